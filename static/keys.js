// Keyboard shortcuts: "/" goes to the header's field, "f" to the filter, "g" and a letter to a page, "j" and "k"
// move through lists, "?" shows the shortcuts. They are ignored in text fields, and can be turned off, since voice input types
// letters, too.
(() => {
  const off = () => localStorage.getItem('keys') === 'off'
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) {
    document.addEventListener(name, () => {
      const choice = document.querySelector('[data-keys]')
      if (choice) choice.checked = !off()
    })
  }
  document.addEventListener('change', (event) => {
    if ('keys' in event.target.dataset) localStorage.setItem('keys', event.target.checked ? 'on' : 'off')
  })

  // A link with the role button is also activated by the space bar.
  document.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || !event.target.matches('a[role="button"]')) return
    event.preventDefault()
    event.target.click()
  })

  // Escape in a filter clears it, and a second one leaves it, as it leaves any other field but one of a menu, which closes.
  const leave = (event) => {
    const field = event.target
    if (field.closest('[popover]')) return
    if (!('filter' in field.dataset) || field.value === '') return field.blur()
    event.preventDefault() // the browser would empty the field and leave the filter as it is
    field.value = ''
    field.form.requestSubmit()
  }

  // Arrow keys, Home and End move through the menu of a row, from the button that has opened it, too.
  document.addEventListener('keydown', (event) => {
    const menu = event.target.closest?.('[popover]') ?? event.target.popoverTargetElement
    if (!menu?.matches('.row-menu:popover-open') || event.target.matches('input, select')) return
    const entries = [...menu.querySelectorAll('.entry')].filter((entry) => entry.checkVisibility())
    const at = entries.indexOf(document.activeElement)
    const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 0) - 1, Home: 0, End: -1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    entries.at(to % entries.length).focus()
  })
  // A dialog that a menu has opened gives the focus back to its entry there: browsers do so only if no other popover is open.
  document.addEventListener('beforetoggle', ({ target, newState }) => {
    if (newState === 'closed' && target.contains(document.activeElement)) document.querySelector(`.entry[popovertarget="${target.id}"]`)?.focus()
  }, true)

  let going = 0 // when "g" was pressed
  document.addEventListener('keydown', (event) => {
    if (off() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (event.target.closest('input, textarea, select, [contenteditable]')) {
      if (event.key === 'Escape') leave(event)
      return
    }
    if (event.key === '/') {
      event.preventDefault()
      document.querySelector('[data-find]')?.click()
    } else if (event.key === 'f' && !going) {
      const field = document.querySelector('[data-filter]')
      if (!field) return
      event.preventDefault()
      field.focus()
      field.select()
    } else if (event.key === '?') {
      event.preventDefault()
      document.getElementById('keys').togglePopover()
    } else if (event.key === 'j' || event.key === 'k') {
      const stops = [...document.querySelectorAll('main :is(.title, .name > .link, .wagon, .events li > .link, .found a, .table tbody th a, .card a, article[data-question])')].filter((link) => link.checkVisibility())
      const at = stops.indexOf(document.activeElement)
      stops[event.key === 'j' ? at + 1 : Math.max(0, at - 1)]?.focus()
    } else if (event.key === 'g') {
      going = event.timeStamp
      return
    } else if (going && event.timeStamp - going < 1500) {
      document.querySelector(`header a[data-key="${CSS.escape(event.key)}"]`)?.click()
    }
    going = 0
  })

  // A wagon under the pointer or in focus has a tooltip with its full text, and the last line that its agent has said,
  // above its list so that it covers no other wagon. Escape closes it.
  const tip = document.createElement('div')
  tip.id = 'tip'
  tip.popover = 'manual'
  tip.role = 'tooltip'
  const hide = () => tip.isConnected && tip.hidePopover()
  const showTip = ({ target }) => {
    const wagon = target.closest?.('.wagon')
    hide()
    if (!wagon) return
    const text = (part) => wagon.querySelector(part).textContent.trim()
    const since = document.createElement('time')
    since.dateTime = wagon.querySelector('time').dateTime
    since.dataset.clock = ''
    tip.replaceChildren(`${text('b')}\n${text('.sr-only')} ${text('time')}, since `, since)
    if (wagon.dataset.says) tip.append(`\n${wagon.dataset.says}`)
    document.dispatchEvent(new CustomEvent('switchyard:beforeShow', { detail: tip }))
    document.body.append(tip)
    tip.showPopover()
    const box = wagon.closest('ul').getBoundingClientRect()
    tip.style.left = Math.max(0, Math.min(box.left, innerWidth - tip.offsetWidth - 8)) + 'px'
    tip.style.top = Math.max(0, box.top - tip.offsetHeight - 4) + 'px'
  }
  for (const name of ['mouseover', 'focusin']) document.addEventListener(name, showTip)
  for (const name of ['scroll', 'htmx:afterSwap']) document.addEventListener(name, hide)
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') hide()
  })
})()
