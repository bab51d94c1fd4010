// What was made for a story: which files somebody has read, by the content of their diffs; the note of a verdict, which is
// kept; and the keys j and k, x, c and Enter. What is kept stays in this browser.
(() => {
  const part = () => document.getElementById('changes')
  const files = () => [...(part()?.querySelectorAll('.changes-file') ?? [])]
  const note = () => part()?.querySelector('[data-note]')
  const noteKey = () => 'note ' + part().dataset.story
  const kept = () => {
    try {
      return JSON.parse(localStorage.getItem('read')) ?? []
    } catch {
      return []
    }
  }
  // The newest 5,000 diffs that were read are remembered.
  const keep = (id, read) => localStorage.setItem('read', JSON.stringify([...kept().filter((other) => other !== id), ...(read ? [id] : [])].slice(-5000)))

  const show = () => {
    if (!part()) return
    const all = files()
    let read = 0
    for (const file of all) {
      const is = file.querySelector('[data-read]').checked
      read += is
      file.classList.toggle('is-read', is)
      part().querySelector(`[data-of="${file.id}"]`)?.classList.toggle('is-read', is)
    }
    const progress = part().querySelector('[data-progress]')
    if (progress) {
      progress.querySelector('progress').value = read
      progress.querySelector('b').textContent = read
    }
    const unread = part().querySelector('[data-unread] small')
    if (unread) unread.textContent = all.length - read
  }
  const tick = (file, read) => {
    file.querySelector('[data-read]').checked = read
    file.querySelector('details').open = !read
    keep(file.dataset.diff, read)
    show()
  }
  const begin = () => {
    if (!part() || 'begun' in part().dataset) return
    part().dataset.begun = ''
    const known = new Set(kept())
    for (const file of files()) {
      if (!known.has(file.dataset.diff)) continue
      file.querySelector('[data-read]').checked = true
      file.querySelector('details').open = false
    }
    if (note() && !note().value) note().value = sessionStorage.getItem(noteKey()) ?? ''
    show()
  }
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) document.addEventListener(name, begin)

  const add = (text) => {
    const field = note()
    if (!field) return
    field.value += (field.value && !field.value.endsWith('\n') ? '\n' : '') + text
    field.dispatchEvent(new Event('input', { bubbles: true }))
    document.getElementById('announcer').textContent = 'Added to the note: ' + text
  }
  const cite = (line) => add(`${line.closest('.changes-file').dataset.path}:${line.dataset.n ?? line.dataset.o} `)
  const go = (file) => {
    if (!file) return
    const folds = file.querySelector('details')
    folds.open = true
    file.querySelector('summary').focus({ preventScroll: true })
    file.scrollIntoView({ block: 'start' })
  }

  document.addEventListener('input', (event) => {
    if ('note' in event.target.dataset) sessionStorage.setItem(noteKey(), event.target.value)
  })
  document.addEventListener('submit', ({ target }) => {
    if (target.closest('.review')) sessionStorage.removeItem(noteKey()) // the page that refuses a verdict has it
  })
  document.addEventListener('change', ({ target }) => {
    if ('read' in target.dataset) tick(target.closest('.changes-file'), target.checked)
  })
  document.addEventListener('click', (event) => {
    const at = event.target
    if (!at.closest?.('#changes')) return
    const next = at.closest('[data-next]')
    const line = at.closest('.diff > [data-n], .diff > [data-o]')
    if (at.closest('[data-add]')) add(at.closest('[data-add]').dataset.add)
    else if (at.closest('[data-unread]')) {
      const pressed = part().classList.toggle('unread-only')
      at.closest('[data-unread]').setAttribute('aria-pressed', pressed)
    } else if (next) {
      event.preventDefault()
      const file = next.closest('.changes-file')
      tick(file, true)
      go(document.getElementById(next.hash.slice(1)))
    } else if (at.closest('.changes-list a')) {
      event.preventDefault()
      go(document.getElementById(at.closest('a').hash.slice(1)))
    } else if (line && event.clientX < line.getBoundingClientRect().left + parseFloat(getComputedStyle(line).getPropertyValue('--gutter'))) cite(line)
  })
  document.addEventListener('keydown', (event) => {
    if (!part() || localStorage.getItem('keys') === 'off' || event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input:not([type=checkbox]), textarea, select, [popover]')) return
    const all = files()
    const file = event.target.closest('.changes-file')
    const at = all.indexOf(file)
    if (event.key === 'j' && (file || event.target === document.body)) go(all[at + 1])
    else if (event.key === 'k' && file) go(all[at - 1])
    else if (event.key === 'x' && file) {
      tick(file, true)
      go(all[at + 1])
    } else if (event.key === 'c' && file) {
      const line = [...file.querySelectorAll('.diff > [data-n]')].find((one) => one.getBoundingClientRect().bottom > 110)
      if (line) cite(line)
    } else return
    event.preventDefault()
    event.stopImmediatePropagation()
  })
})()
