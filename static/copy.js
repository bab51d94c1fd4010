// A button with data-copy copies the text of the element with that id to the clipboard and says so. A path with data-address
// is copied as the whole address.
(() => {
  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy]')
    if (!button) return
    const source = document.getElementById(button.dataset.copy)
    if ('address' in source.dataset) source.textContent = new URL(source.textContent, location.href).href
    try {
      await navigator.clipboard.writeText(source.textContent.trim())
      say(button, 'Copied')
    } catch {
      // Without a secure context there is no clipboard: select the text for the reader to copy.
      source.hidden = false
      getSelection().selectAllChildren(source)
      say(button, 'Selected')
    }
  })
  const say = (button, text) => {
    button.dataset.label ??= button.textContent
    button.textContent = text
    document.getElementById('announcer').textContent = text
    setTimeout(() => {
      button.textContent = button.dataset.label
    }, 2000)
  }
})()
