// The log of events: its windows of time go by the reader's clock, and it can be copied as Markdown.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const local = (at) => at.toLocaleString('sv').slice(0, 16).replace(' ', 'T') // 2026-11-21T14:32

  const windows = () => {
    const day = new Date()
    day.setHours(0, 0, 0, 0)
    const hour = (days, hours) => new Date(day.getFullYear(), day.getMonth(), day.getDate() + days, hours).getTime()
    const today = [day.getTime(), '']
    const last = Number(sessionStorage.getItem('since'))
    return { today, night: [hour(-1, 22), hour(0, 6)], last: last > 0 ? [last, ''] : today }
  }
  const update = () => {
    const here = new URL(location.href)
    const chosen = ['from', 'to'].map((name) => document.getElementById(name)?.dataset.ms ?? '').join()
    for (const link of document.querySelectorAll('[data-preset]')) {
      const [from, to] = windows()[link.dataset.preset] ?? ['', '']
      const url = new URL(link.href)
      for (const [name, value] of [['from', from], ['to', to], ['tz', '']]) {
        if (value === '') url.searchParams.delete(name)
        else url.searchParams.set(name, value)
      }
      const isToday = link.dataset.preset === 'last' && String(windows().today) === String([from, to])
      if (chosen === [from, to].join() && !isToday) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
      link.href = url.pathname + url.search
    }
    for (const mark of document.querySelectorAll('[data-mark]')) {
      const at = new Date(mark.dataset.mark)
      const day = mark.textContent.includes(' ') || at.getHours() === 0 ? at.toLocaleDateString('en-GB', { weekday: 'short' }) + ' ' : ''
      const text = day + at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
      if (mark.textContent !== text) mark.textContent = text
    }
    for (const field of document.querySelectorAll('[data-ms]')) {
      if (document.activeElement !== field) field.value = local(new Date(Number(field.dataset.ms)))
    }
    for (const field of document.querySelectorAll('[data-zone]')) field.value = zone
    for (const text of document.querySelectorAll('[data-zone-name]')) text.textContent = zone + ', your clock'
  }
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) document.addEventListener(name, update)

  // A line for each event that the page shows, in its order, also of those that are folded.
  const words = (element) => element?.textContent.trim().replace(/\s+/g, ' ') ?? ''
  const line = (item) => {
    const [date, time] = local(new Date(item.dataset.at)).split('T')
    const why = words(item.querySelector('.why'))
    const what = words(item.querySelector('.what')) + (why && ': ' + why)
    return `- ${date} ${time} ${words(item.querySelector('.title') ?? item.querySelector('.text-muted'))}: ${what} (${words(item.querySelector('.project'))})`
  }
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy-events]')
    if (!button) return
    const items = [...document.querySelectorAll('.events [id^="event-"], .audit [data-at]')]
    document.dispatchEvent(new CustomEvent('switchyard:copy', { detail: { button, text: items.map(line).join('\n') + '\n' } }))
  })
})()
