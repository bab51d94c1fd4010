// The header's field searches while the reader types. Enter opens the first result, the arrow keys move through the results,
// Escape leaves.
(() => {
  const form = () => document.querySelector('[data-find]')
  const results = () => document.getElementById('find-results')

  // When the results change while one has the focus, the same one keeps it, or else the field gets it.
  let focused
  document.addEventListener('htmx:beforeSwap', (event) => {
    if (event.detail.target === results()) focused = results().contains(document.activeElement) && document.activeElement.href
  })
  document.addEventListener('htmx:afterSwap', (event) => {
    if (event.detail.target !== results()) return
    if (focused) {
      form().elements.q.focus() // without focus within, the results are hidden
      ;[...results().querySelectorAll('a')].find((link) => link.href === focused)?.focus()
    }
    const count = results().querySelectorAll('a').length
    document.getElementById('announcer').textContent = results().childElementCount ? count + ' found' : ''
  })
  // The list may be for an older text, so the gateway finds the first result.
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
