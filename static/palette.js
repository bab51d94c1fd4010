// The palette finds and does anything: Ctrl K, ⌘K, "/" or the header's field opens it. The gateway makes the options for the
// text; a verb that begins it becomes a tag. The arrow keys choose, Enter does, Tab offers more for a story.
(() => {
  const dialog = () => document.getElementById('palette')
  const form = () => dialog().querySelector('form')
  const field = () => dialog()?.querySelector('[role="combobox"]')
  const list = () => document.getElementById('palette-list')
  const options = () => [...list().querySelectorAll('[role="option"]')]
  const chosen = () => list().querySelector('[aria-selected="true"]')
  const verb = /^(move|block|unblock|assign|acknowledge|ack|switch|answer|open|go)\s+(?:to\s+)?/i

  let tag = '' // the beginning of the text that is shown as a tag
  let story = null // the chosen story
  let entered = null // the key that was pressed before the options for the text were there
  const text = () => (tag + ' ' + field().value).trim()
  const isCurrent = () => list().querySelector('[data-for]')?.dataset.for === text()

  let later
  const find = (delay = 0) => {
    const { q, here, project, story: id } = form().elements
    const label = [tag, story?.name].filter(Boolean).join(' ')
    const shown = document.getElementById('palette-tag')
    shown.textContent = label
    shown.hidden = !label
    q.value = text()
    here.value = location.pathname + location.search
    project.value = story?.project ?? ''
    id.value = story?.id ?? ''
    clearTimeout(later)
    later = setTimeout(() => htmx.trigger(form(), 'find'), delay)
  }
  const takeVerb = () => {
    const found = tag === '' && verb.exec(field().value)
    if (!found) return
    tag = found[1].toLowerCase()
    field().value = field().value.slice(found[0].length)
  }
  const open = (typed = '') => {
    if (!dialog() || dialog().open) return
    document.querySelectorAll(':popover-open').forEach((shown) => shown.hidePopover())
    tag = ''
    story = entered = null
    field().value = typed
    list().replaceChildren()
    dialog().showModal()
    field().focus()
    takeVerb()
    find()
  }
  const choose = (option) => {
    chosen()?.setAttribute('aria-selected', 'false')
    option?.setAttribute('aria-selected', 'true')
    option?.scrollIntoView({ block: 'nearest' })
    if (option) field().setAttribute('aria-activedescendant', option.id)
    else field().removeAttribute('aria-activedescendant')
  }
  const goOn = (option, word) => {
    if (option.dataset.story) {
      story = { project: option.dataset.project, id: option.dataset.story, name: option.querySelector('.line').textContent.trim().replace(option.querySelector('.verb').textContent, '').trim() }
    }
    tag = word
    field().value = ''
    field().focus()
    find()
  }
  const act = (option, inNewTab) => {
    if (!option || option.ariaDisabled === 'true') return
    const { url, fill } = option.dataset
    if (fill) return goOn(option, fill.trim())
    if (url && inNewTab) return window.open(url, '_blank', 'noopener')
    dialog().close()
    document.activeElement?.blur() // or Enter, held a little longer, presses the button that had the focus before, as Undo
    if (url) location.assign(url)
    else option.querySelector('form').requestSubmit()
  }

  document.addEventListener('htmx:afterSwap', ({ detail: { target } }) => {
    if (target !== list()) return
    const all = options()
    choose(all.find((option) => option.ariaDisabled !== 'true'))
    document.getElementById('announcer').textContent = all.length.toLocaleString('en') + ' found'
    if (!entered || !isCurrent()) return
    const { inNewTab } = entered
    entered = null
    act(chosen(), inNewTab)
  })
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
      if (!dialog()) return
      event.preventDefault()
      if (dialog().open) dialog().close()
      else open()
      return
    }
    if (!dialog()?.open || event.isComposing || event.target !== field()) return
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) {
      event.preventDefault()
      const all = options()
      choose(all[(all.indexOf(chosen()) + step + all.length) % all.length])
    } else if (event.key === 'Enter') {
      event.preventDefault()
      const inNewTab = event.ctrlKey || event.metaKey
      if (isCurrent()) return act(chosen(), inNewTab)
      entered = { inNewTab }
      find()
    } else if (event.key === 'Tab' && !event.shiftKey && chosen()?.dataset.story) {
      event.preventDefault()
      goOn(chosen(), '')
    } else if (event.key === 'Backspace' && field().value === '' && (tag || story)) {
      event.preventDefault()
      if (tag) tag = ''
      else story = null
      find()
    }
  })
  document.addEventListener('input', ({ target }) => {
    if (target === field()) {
      entered = null
      takeVerb()
      find(80)
    } else if (target.closest('[data-find]')) {
      const typed = target.value
      target.value = ''
      open(typed)
    }
  })
  // What was found under a finger is not shown (live.js); it is once that is lifted.
  for (const name of ['pointerup', 'pointercancel']) {
    document.addEventListener(name, () => {
      if (dialog()?.open && !isCurrent()) find()
    })
  }
  document.addEventListener('click', (event) => {
    const opener = event.target.closest('[data-find]')
    if (opener && dialog()) {
      event.preventDefault()
      return open()
    }
    if (!dialog()?.open) return
    const option = event.target.closest('#palette-list [role="option"]')
    if (option) act(option, event.ctrlKey || event.metaKey)
    else if (event.target === dialog() || event.target.closest('[data-close]')) dialog().close()
  })
  document.addEventListener('submit', (event) => {
    if (!event.target.matches('#palette > form, form[data-find]')) return
    event.preventDefault()
    open()
  })
  document.addEventListener('DOMContentLoaded', () => {
    if (!/mac|iphone|ipad/i.test(navigator.platform)) return
    for (const key of document.querySelectorAll('.find kbd')) key.textContent = '⌘K'
  })
})()
