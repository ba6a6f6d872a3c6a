/* Search without a server: a browser refuses workers on pages opened from disk, so one of these runs in a frame. */
if (location.protocol === "file:") {
  const READY = 1, QUERY = 2
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      const inside = this.inside, base = new URL(address, location.href)
      inside.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() =>
        new Promise((resolve, reject) => {
          const element = inside.document.createElement("script")
          element.src = new URL(script, base)
          element.onload = resolve
          element.onerror = () => reject(new Error(`not loaded: ${script}`))
          inside.document.body.appendChild(element)
        })), Promise.resolve())
      inside.postMessage = data => this.tell(data)
      inside.importScripts(base.href).then(() => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
    }
    tell(data) {
      if (data.type === READY) {
        this.indexed = true
        this.waiting.splice(0).forEach(waiting => this.postMessage(waiting))
      }
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }
    postMessage(data) {
      // What is typed before the index is made would fail, and nobody would ask again.
      if (!this.ready || (data.type === QUERY && !this.indexed)) return void this.waiting.push(data)
      this.inside.dispatchEvent(new MessageEvent("message", { data }))
    }
    terminate() {}
  }
}
