// Keeps relative times current. The server writes them to the minute: <time data-age> is "14 min", <time data-ago>
// "14 min ago". The exact time on hover is made local to the browser.
(() => {
  const units = [[60, 1, 's'], [3600, 60, 'min'], [86400, 3600, 'h'], [Infinity, 86400, 'd']]
  const age = (seconds) => {
    const [, size, unit] = units.find(([below]) => seconds < below)
    return Math.floor(seconds / size) + '\u00a0' + unit
  }
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

  const update = (root) => {
    for (const element of root.querySelectorAll('time[data-age], time[data-ago]')) {
      const at = new Date(element.dateTime)
      const ahead = 'ahead' in element.dataset // a time to come, such as an expiry
      const seconds = Math.max(0, (ahead ? at - Date.now() : Date.now() - at) / 1000)
      const text = age(seconds) + ('ago' in element.dataset ? ' ago' : '')
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
