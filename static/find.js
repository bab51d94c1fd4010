// The header's field finds while something is typed. Enter opens the first result, the arrow keys walk through the others,
// Escape leaves.
(() => {
  const form = () => document.querySelector('[data-find]')
  const results = () => document.getElementById('find-results')

  // Who walks through the results while others come stays on the same one, or goes back to the field.
  let walked
  document.addEventListener('htmx:beforeSwap', (event) => {
    if (event.detail.target === results()) walked = results().contains(document.activeElement) && document.activeElement.href
  })
  document.addEventListener('htmx:afterSwap', (event) => {
    if (event.detail.target !== results()) return
    if (walked) {
      form().elements.q.focus() // without focus within, the results are hidden
      ;[...results().querySelectorAll('a')].find((link) => link.href === walked)?.focus()
    }
    const count = results().querySelectorAll('a').length
    document.getElementById('announcer').textContent = results().childElementCount ? count + ' found' : ''
  })
  // The list may be of what was typed before: the gateway knows what is first now.
  document.addEventListener('submit', (event) => {
    if (event.target !== form()) return
    event.preventDefault()
    const text = form().elements.q.value.trim()
    if (text) location.assign(form().action + '?' + new URLSearchParams({ q: text, open: '1' }))
  })
  document.addEventListener('keydown', (event) => {
    const field = event.target.closest('[data-find]')?.elements.q
    if (!field || event.isComposing) return
    if (event.key === 'Escape') {
      field.value = ''
      results().replaceChildren()
      document.activeElement.blur()
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const stops = [field, ...results().querySelectorAll('a')]
    stops[Math.min(stops.length - 1, Math.max(0, stops.indexOf(document.activeElement) + step))].focus()
  })
})()
