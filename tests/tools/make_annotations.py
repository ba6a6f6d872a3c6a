"""Let annotation tools themselves label what stratal exports: `python make_annotations.py FOLDER`, offline.

Needs stratal, label-studio-sdk, argilla and potato-annotation in one environment. Ann answers every item and
skips the last; bob answers the first two.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

IDS = ["007", 'a"b', "two\nlines", "köln", "=1+1"]
ANN = dict(zip(IDS, ["Pass", "Fail", "Pass", "Pass", None], strict=True))
BOB = dict(zip(IDS[:2], ["Fail", "Fail"], strict=True))
NOTE = 'doubtful, "very"'


def tasks() -> list[Any]:
    from stratal.labels.annotation_tools import Task

    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    return [
        Task(
            id=name, payload={"question": f"Is {name} right?", "answer@strict": "<b>東京</b>", "turns": turns}
        )
        for name in IDS
    ]


def asked() -> Any:
    from stratal.labels.annotation_tools import ToolQuestion

    return ToolQuestion(
        text="Is the answer correct?", choices=("Pass", "Fail"), keys=("1", "2"), rubric="Be strict."
    )


def label_studio(folder: Path) -> None:
    from label_studio_sdk.converter import Converter
    from label_studio_sdk.label_interface import LabelInterface
    from label_studio_sdk.label_interface.objects import AnnotationValue, TaskValue

    from stratal.labels.annotation_tools import write_label_studio

    write_label_studio(tasks(), asked(), folder)
    config = (folder / "config.xml").read_text()
    interface = LabelInterface(config)
    interface.validate()
    exported = []
    for number, task in enumerate(json.loads((folder / "tasks.json").read_text()), start=1):
        item = task["data"]["item_id"]
        annotations = []
        for who, said in ((1, ANN), (2, BOB)):
            if item not in said:
                continue
            answer = {} if said[item] is None else {"verdict": said[item]}
            noted = {"note": NOTE} if item == "007" and who == 1 else {}
            regions = [region._dict() for region in interface.create_regions({**answer, **noted})]
            annotations.append({
                "id": 10 * number + who, "completed_by": who, "result": regions,
                "was_cancelled": said[item] is None,
                "created_at": f"2026-11-21T10:0{number}:00Z", "updated_at": f"2026-11-21T10:0{number}:30Z",
                "lead_time": 12.5,
            })  # fmt: skip
        whole = {"id": number, "data": task["data"], "annotations": annotations, "predictions": []}
        TaskValue(**whole)
        assert all(AnnotationValue(**annotation) for annotation in annotations)
        exported.append(whole)
    path = folder / "export.json"
    path.write_text(json.dumps(exported, ensure_ascii=False, indent=1))
    Converter(config, str(folder)).convert(str(path), str(folder / "min"), "JSON_MIN", is_dir=False)


def argilla(folder: Path) -> None:
    import argilla as rg
    from argilla.client import Argilla
    from argilla.records._io import GenericIO, JsonIO

    from stratal.labels.annotation_tools import write_argilla

    Argilla._default_client = SimpleNamespace(api=SimpleNamespace(
        questions=None, fields=None, metadata=None, vectors=None, datasets=None, records=None
    ))  # fmt: skip
    write_argilla(tasks(), asked(), folder)
    settings = rg.Settings.from_json(folder / ".argilla" / "settings.json")
    assert settings.serialize()["questions"][0]["settings"]["options"][0]["value"] == "Pass"
    users = {"ann": "6f2c1c9e-0000-4000-8000-000000000001", "bob": "6f2c1c9e-0000-4000-8000-000000000002"}
    records = JsonIO._records_from_json(folder / "records.json")
    for record in records:
        for who, said in (("ann", ANN), ("bob", BOB)):
            if record.id not in said:
                continue
            answer = said[record.id]
            state = "discarded" if answer is None else "submitted"
            record.responses.add(rg.Response("verdict", answer, user_id=users[who], status=state))
            if record.id == "007" and who == "ann":
                record.responses.add(rg.Response("note", NOTE, user_id=users[who], status=state))
    JsonIO.to_json(records, folder / "to_json.json")
    with (folder / "to_list.json").open("w") as file:
        json.dump(GenericIO.to_list(records, flatten=True), file)


def potato(folder: Path) -> None:
    from stratal.labels.annotation_tools import write_potato

    write_potato(tasks(), asked(), folder)
    os.chdir(folder)
    from potato import flask_server

    app = flask_server.create_app("config.yaml")
    client = app.test_client()
    for who, said in (("ann", ANN), ("bob", BOB)):
        client.post("/register", data={"email": who, "pass": "x", "action": "signup"})
        client.post("/auth", data={"email": who, "pass": "x", "action": "login"})
        client.get("/annotate")
        for item, answer in said.items():
            given = {} if answer is None else {f"verdict:{answer}": answer}
            noted = {"note:text_box": NOTE} if item == "007" and who == "ann" else {}
            done = client.post(
                "/updateinstance", json={"instance_id": item, "annotations": {**given, **noted}}
            )
            assert done.status_code == 200, done.data
        client.delete_cookie("session")
    os.chdir("/")
    for path in folder.glob("*"):
        if path.name not in ("config.yaml", "instances.jsonl", "annotation_output"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    for write in [label_studio, argilla, potato]:
        (place / write.__name__).mkdir(parents=True)
        write(place / write.__name__)
