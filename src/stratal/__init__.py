"""stratal: how good is this model, when a human can only label a few hundred of its outputs?"""
