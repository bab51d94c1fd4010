// Keeps relative times current: the server writes <time data-age>, "14 min", and <time data-ago>, "14 min ago", to the minute.
// Also changes times of day, <time data-clock> with the date and <time data-hour> without, and the exact time on hover to the
// reader's time zone. All have the server's format.
(() => {
  const units = [[60, 1, 's'], [3600, 60, 'min'], [86400, 3600, 'h'], [Infinity, 86400, 'd']]
  const age = (seconds) => {
    const [, size, unit] = units.find(([below]) => seconds < below)
    return Math.floor(seconds / size) + '\u00a0' + unit
  }
  const month = new Intl.DateTimeFormat('en-US', { month: 'short' }) // en-GB has "Sept"
  const day = (at) => at.getDate() + ' ' + month.format(at)
  const dayOfYear = (at) => day(at) + ' ' + at.getFullYear()

  const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
  const seconds = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
  const clockText = (at) => {
    const now = new Date()
    if (at.toDateString() === now.toDateString()) return 'today ' + clock.format(at)
    return (at.getFullYear() === now.getFullYear() ? day : dayOfYear)(at) + ' ' + clock.format(at)
  }
  const ageText = (at, { ago, ahead }) => { // ahead: a time in the future, such as an expiry
    const ms = ahead === undefined ? Date.now() - at : at - Date.now()
    return age(Math.max(0, ms / 1000)) + (ago === undefined ? '' : ' ago')
  }

  const update = (root) => {
    for (const element of root.querySelectorAll('time[data-age], time[data-ago], time[data-clock], time[data-hour]')) {
      const at = new Date(element.dateTime)
      const text = 'hour' in element.dataset ? clock.format(at) : 'clock' in element.dataset ? clockText(at) : ageText(at, element.dataset)
      if (element.textContent !== text) element.textContent = text
      const title = ('hour' in element.dataset ? ageText(at, { ago: '' }) + ', ' : '') + dayOfYear(at) + ' ' + seconds.format(at)
      if (element.title !== title && !element.closest('.wagon')) element.title = title
    }
  }

  // Events are listed by the reader's days, not the gateway's.
  const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'long' })
  const longDay = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long' })
  const keyOf = (at) => at.toLocaleDateString('sv') // 2026-11-21
  const titleOf = (at) => {
    const yesterday = new Date()
    const date = longDay.format(at) + (at.getFullYear() === yesterday.getFullYear() ? '' : ' ' + at.getFullYear())
    const dated = weekday.format(at) + ' ' + date
    if (keyOf(at) === keyOf(yesterday)) return ['Today', dated]
    yesterday.setDate(yesterday.getDate() - 1)
    return keyOf(at) === keyOf(yesterday) ? ['Yesterday', dated] : [weekday.format(at), date]
  }
  const countOf = (n, word) => n.toLocaleString('en') + ' ' + word
  // The numbers of a day that older events were added to, or that is another one for the reader.
  const updateTotals = (root) => {
    const sections = [...root.querySelectorAll('.of-many > section')]
    for (const total of root.querySelectorAll('.of-many > section > h2 > small')) {
      const day = total.closest('section').dataset.day
      const count = (what) => sections.reduce((n, one) => n + (one.dataset.day === day ? one.querySelectorAll(what).length : 0), 0)
      const [events, finished] = [count('[id^="event-"]'), count('.mark.finished')]
      const isCut = sections.at(-1).dataset.day === day && document.getElementById('older')
      const text = isCut ? 'the newest ' + countOf(events, '').trim()
        : countOf(events, events === 1 ? 'event' : 'events') + (finished ? ', ' + countOf(finished, 'finished') : '')
      if (total.textContent !== text) total.textContent = text
    }
  }
  const updateDays = (root) => {
    let above = '' // last day of the list above: older events are loaded below
    for (const list of root.querySelectorAll('[data-days]')) {
      let at
      // A line without a time belongs to the event above it.
      const events = [...list.querySelectorAll(':scope > section > ol > li')].map((line) => {
        at = line.dataset.at ? new Date(line.dataset.at) : at
        return { line, at }
      })
      const kind = list.querySelector(':scope > section > ol')?.className
      if (events.some(({ line, at }) => line.closest('section').dataset.day !== keyOf(at))) {
        let section
        list.replaceChildren()
        for (const { line, at } of events) {
          if (section?.dataset.day !== keyOf(at)) {
            section = document.createElement('section')
            section.dataset.day = keyOf(at)
            const [name, date] = titleOf(at)
            if (keyOf(at) !== above && (name !== 'Today' || list.dataset.days === 'h2')) {
              const head = document.createElement(list.dataset.days)
              head.append(name + ' ', Object.assign(document.createElement('span'), { textContent: date }))
              if (list.dataset.days === 'h2') head.append(' ', document.createElement('small'))
              section.append(head)
            }
            section.append(document.createElement('ol'))
            section.lastChild.className = kind
            list.append(section)
          }
          section.lastChild.append(line)
        }
      }
      above = list.lastElementChild?.dataset.day
    }
    updateTotals(root)
  }
  // When this browser left the console last, before this visit of it. A visit is that of a tab.
  try {
    if (sessionStorage.getItem('since') === null) sessionStorage.setItem('since', localStorage.getItem('left') ?? '')
    addEventListener('pagehide', () => localStorage.setItem('left', Date.now()))
  } catch {} // a browser that keeps nothing

  // Pages whose numbers go by days use the reader's.
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone)
  if (!document.cookie.includes('switchyard_zone=' + zone)) document.cookie = `switchyard_zone=${zone}; path=/; max-age=31536000; samesite=lax`

  const updatePage = () => {
    if (!document.hidden) update(document)
  }
  setInterval(updatePage, 1000)
  for (const name of ['DOMContentLoaded', 'visibilitychange', 'htmx:afterSettle']) document.addEventListener(name, updatePage)
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) document.addEventListener(name, () => updateDays(document))
  // New content gets the right times before it is shown.
  document.addEventListener('switchyard:beforeShow', (event) => {
    update(event.detail)
    updateDays(event.detail)
  })
})()
