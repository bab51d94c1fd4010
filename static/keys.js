// Keyboard shortcuts: "/" goes to the header's field, "f" to the filter, "g" and a letter to a page, "?" shows the list. None
// acts while something is typed. They can be turned off in that list, since voice input types letters as well.
(() => {
  const off = () => localStorage.getItem('keys') === 'off'
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) {
    document.addEventListener(name, () => {
      document.querySelector('[data-keys]').checked = !off()
    })
  }
  document.addEventListener('change', (event) => {
    if ('keys' in event.target.dataset) localStorage.setItem('keys', event.target.checked ? 'on' : 'off')
  })

  // A link that is a button acts on the space bar, too.
  document.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || !event.target.matches('a[role="button"]')) return
    event.preventDefault()
    event.target.click()
  })

  // Escape in a filter shows everything again, and then leaves it, as it leaves any other field.
  const leave = (event) => {
    const field = event.target
    if (!('filter' in field.dataset) || field.value === '') return field.blur()
    event.preventDefault() // the browser would empty the field and leave the filter as it is
    field.value = ''
    field.form.requestSubmit()
  }

  let going = 0 // when "g" was pressed
  document.addEventListener('keydown', (event) => {
    if (off() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (event.target.closest('input, textarea, select, [contenteditable]')) {
      if (event.key === 'Escape') leave(event)
      return
    }
    if (event.key === '/' || (event.key === 'f' && !going)) {
      const field = document.querySelector(event.key === '/' ? '[data-find] input' : '[data-filter]')
      if (!field) return
      event.preventDefault()
      field.focus()
      field.select()
    } else if (event.key === '?') {
      event.preventDefault()
      document.getElementById('keys').togglePopover()
    } else if (event.key === 'g') {
      going = event.timeStamp
      return
    } else if (going && event.timeStamp - going < 1500) {
      document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click()
    }
    going = 0
  })
})()
