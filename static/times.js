// Keeps relative times current. The server writes them to the minute: <time data-age> is "14 min", <time data-ago>
// "14 min ago". Clocks, <time data-clock> with the day and <time data-hour> without, and the exact time on hover are made local to the browser.
(() => {
  const units = [[60, 1, 's'], [3600, 60, 'min'], [86400, 3600, 'h'], [Infinity, 86400, 'd']]
  const age = (seconds) => {
    const [, size, unit] = units.find(([below]) => seconds < below)
    return Math.floor(seconds / size) + '\u00a0' + unit
  }
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

  const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
  const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
  const dayOfYear = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
  const clockText = (at) => {
    const now = new Date()
    if (at.toDateString() === now.toDateString()) return 'today ' + clock.format(at)
    return (at.getFullYear() === now.getFullYear() ? day : dayOfYear).format(at) + ' ' + clock.format(at)
  }
  const ageText = (at, { ago, ahead }) => { // ahead: a time to come, such as an expiry
    const ms = ahead === undefined ? Date.now() - at : at - Date.now()
    return age(Math.max(0, ms / 1000)) + (ago === undefined ? '' : ' ago')
  }

  const update = (root) => {
    for (const element of root.querySelectorAll('time[data-age], time[data-ago], time[data-clock], time[data-hour]')) {
      const at = new Date(element.dateTime)
      const text = 'hour' in element.dataset ? clock.format(at) : 'clock' in element.dataset ? clockText(at) : ageText(at, element.dataset)
      if (element.textContent !== text) element.textContent = text
      const title = exact.format(at)
      if (element.title !== title) element.title = title
    }
  }
  const updatePage = () => {
    if (!document.hidden) update(document)
  }
  setInterval(updatePage, 1000)
  for (const name of ['DOMContentLoaded', 'visibilitychange', 'htmx:afterSettle']) document.addEventListener(name, updatePage)
  // What replaces a part has the right times before it is shown.
  document.addEventListener('switchyard:beforeMorph', (event) => update(event.detail))
})()
