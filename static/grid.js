// While the page refreshes, rows change places only if the worst trouble of one has changed. While the pointer or the focus is in
// the grid, not even then: a button applies the new order, as loading the page does. A wagon with the focus keeps it when its
// story moves.
(() => {
  const isUsed = () => document.querySelector('.grid-table:hover') !== null || document.activeElement.closest('.grid-table') !== null
  const bodies = (root) => [...root.querySelectorAll('.grid-table > tbody')]
  const order = (body) => [...body.rows].map((row) => row.id)
  const address = (part) => part?.dataset.hxGet?.replace(/[?&]v=[^&]*/, '')
  const shows = (row, signal) => row.querySelector('.troubles > ' + signal) !== null
  const trouble = (row) => {
    if (row.className === 'band') return 2 // between those in trouble and the others
    return shows(row, '.signal-stop') ? 0 : shows(row, ':is(.signal-caution, .signal-asks)') ? 1 : 3
  }
  const button = (root) => root.querySelector('[data-order]')

  let wanted = null // the new order of each group by its id, while the old one is kept
  let focused = null // the story whose wagon has the focus, and its row

  document.addEventListener('switchyard:beforeMorph', ({ detail: { target, fragment } }) => {
    const { activeElement } = document
    focused = activeElement.matches('.wagon') ? { story: activeElement.pathname, row: activeElement.closest('tr').id } : null
    const kept = wanted !== null || isUsed()
    wanted = null
    if (target.id !== 'overview' || address(target) !== address(fragment.querySelector('#overview'))) return
    const now = new Map(bodies(target).map((body) => [body.parentElement.id, order(body)]))
    const next = new Map()
    let differs = false
    for (const body of bodies(fragment)) {
      const before = now.get(body.parentElement.id) ?? []
      const after = order(body)
      next.set(body.parentElement.id, after)
      const place = (row) => before.indexOf(row.id) + 1 || 1e9
      body.append(...[...body.rows].sort((a, b) => (kept ? 0 : trouble(a) - trouble(b)) || place(a) - place(b)))
      differs ||= kept && order(body).join('\n') !== after.join('\n')
    }
    if (!differs) return
    wanted = next
    button(fragment).hidden = false
  })
  document.addEventListener('switchyard:afterMorph', () => {
    if (!focused) return
    const wagon = [...document.querySelectorAll('.wagon')].find((link) => link.pathname === focused.story)
    const row = document.getElementById(focused.row)
    if (wagon !== document.activeElement) (wagon ?? row?.querySelector('.name > .link'))?.focus({ preventScroll: true })
  })
  document.addEventListener('click', ({ target }) => {
    if (!target.closest('[data-order]')) return
    for (const body of bodies(document)) {
      const after = wanted?.get(body.parentElement.id) ?? []
      body.append(...after.map((id) => document.getElementById(id)).filter((row) => row?.parentElement === body))
    }
    wanted = null
    button(document).hidden = true
    document.getElementById('pipeline-title').focus()
  })
})()
