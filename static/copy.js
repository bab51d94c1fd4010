// A button with data-copy copies the text of the element with that id to the clipboard and says so. A path with data-address
// is copied as the whole address. Other scripts copy a text by the event switchyard:copy.
(() => {
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]')
    if (!button) return
    const source = document.getElementById(button.dataset.copy)
    if ('address' in source.dataset) source.textContent = new URL(source.textContent, location.href).href
    const pieces = [...source.querySelectorAll('.exact > .exact')] // without what unfolds them
    copy(button, pieces.length ? pieces.map((piece) => piece.textContent).join('') : source.textContent.trim())
  })
  document.addEventListener('switchyard:copy', ({ detail: { button, text } }) => copy(button, text))
  const copy = async (button, text) => {
    try {
      await navigator.clipboard.writeText(text)
      say(button, 'Copied')
    } catch {
      // Without a secure context there is no clipboard: a field is shown with the text selected, and the browser copies that.
      const field = show(button, text)
      say(button, document.execCommand('copy') ? 'Copied' : 'Selected: copy it')
      field.focus()
    }
  }
  // The field stays, since what was copied should be seen; it ends with the focus.
  const show = (button, text) => {
    document.getElementById('copied')?.remove()
    const field = document.createElement('textarea')
    field.id = 'copied'
    field.className = 'input copied'
    field.readOnly = true
    field.setAttribute('aria-label', 'Copied text')
    field.value = text
    field.rows = Math.min(8, text.split('\n').length)
    const inDialog = button.closest('[popover], dialog')
    ;(inDialog ?? document.body).append(field)
    field.select()
    field.addEventListener('blur', () => field.remove())
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return
      event.stopPropagation()
      field.remove()
      button.focus()
    })
    return field
  }
  const say = (button, text) => {
    button.dataset.label ??= button.textContent
    button.textContent = text
    document.getElementById('announcer').textContent = text
    setTimeout(() => {
      button.textContent = button.dataset.label
    }, 2000)
  }
})()
