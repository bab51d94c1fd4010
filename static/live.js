// Parts of a page that refresh themselves have data-live. They pause while the tab is hidden or when the reader pauses
// them, refresh at once on return, and say when the gateway does not answer.
(() => {
  const root = document.documentElement
  root.dataset.scripts = ''

  // The console's swap styles: "morph" replaces the target and keeps what is being typed; "morph:innerHTML" replaces
  // its content, including values except a filter's. (Idiomorph's own extension needs eval for that, which the page forbids.)
  const callbacks = {
    // Whether a disclosure is open is the reader's choice, as is what is chosen in a list.
    beforeAttributeUpdated: (name, element) => !(name === 'open' && element.tagName === 'DETAILS' || ['checked', 'value'].includes(name) && 'choice' in element.dataset),
    afterNodeAdded: (node) => {
      if (node.dataset && 'fresh' in node.dataset) node.classList.add('fresh')
    },
  }
  // While their part refreshes, the result of an action, with its Undo, stays until the next action or until dismissed, an
  // open dialog keeps what was typed in it, and what was loaded on demand stays.
  const partCallbacks = {
    ...callbacks,
    beforeNodeRemoved: (node) => !node.matches?.('.said, :popover-open'),
    beforeNodeMorphed: (node) => !node.matches?.(':popover-open, [data-kept]'),
  }

  // The wagon of a story that has moved travels from its old position to the new one, or to the count at the end of its
  // track. A story from the backlog starts at the count there.
  const finished = (row) => Number(row.querySelector('.last .load')?.textContent.replaceAll(',', ''))
  const wagons = () => new Map([...document.querySelectorAll('.rail .wagon')].map((wagon) => {
    const row = wagon.closest('tr')
    return [wagon.pathname, { wagon, ghost: wagon.cloneNode(true), row: row.id, at: wagon.closest('td').dataset.label, box: wagon.getBoundingClientRect(), done: finished(row) }]
  }))
  const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')
  const move = (element, by, reverse) => element.animate(
    { transform: [`translate(${by.left}px, ${by.top}px)`, 'none'], zIndex: [1, 1] },
    { duration: 300, easing: 'ease-in-out', direction: reverse ? 'reverse' : 'normal' },
  )
  const distance = (from, to) => ({ left: from.left - to.left, top: from.top - to.top })
  const travel = (before) => {
    if (reducedMotion.matches || !before.size) return
    const after = wagons()
    for (const [story, { wagon, at, box }] of after) {
      const was = before.get(story)
      const isNew = wagon.matches('.signal-none') && Date.now() - new Date(wagon.querySelector('time').dateTime) < 60000
      const from = was?.box ?? (isNew ? wagon.closest('tr').querySelector('.first .load')?.getBoundingClientRect() : null)
      if (from && was?.at !== at) move(wagon, distance(from, box))
    }
    for (const [story, { ghost, row, box, done }] of before) { // the element may now show another story
      const end = document.getElementById(row)?.querySelector('.last .load')
      if (after.has(story) || !end || finished(end.closest('tr')) <= done) continue
      ghost.classList.add('ghost')
      ghost.ariaHidden = 'true'
      for (const side of ['left', 'top', 'width']) ghost.style[side] = box[side] + 'px'
      document.body.append(ghost)
      move(ghost, distance(end.getBoundingClientRect(), box), true).onfinish = () => ghost.remove()
    }
  }

  htmx.defineExtension('morph', {
    isInlineSwap: (style) => style === 'morph',
    handleSwap: (style, target, fragment) => {
      document.dispatchEvent(new CustomEvent('switchyard:beforeShow', { detail: fragment }))
      if (style === 'morph') {
        const before = wagons()
        const swap = { detail: { target, fragment } }
        document.dispatchEvent(new CustomEvent('switchyard:beforeMorph', swap))
        const morphed = Idiomorph.morph(target, fragment.children, { morphStyle: 'outerHTML', ignoreActiveValue: true, callbacks: partCallbacks })
        document.dispatchEvent(new CustomEvent('switchyard:afterMorph', swap))
        travel(before)
        return morphed
      }
      if (style === 'morph:innerHTML') {
        const ignoreActiveValue = 'filter' in (document.activeElement?.dataset ?? {})
        const top = scrollY // the browser would follow what has the focus to where it is now
        const morphed = Idiomorph.morph(target, fragment.children, { morphStyle: 'innerHTML', ignoreActiveValue, callbacks })
        scrollTo({ top, behavior: 'instant' })
        return morphed
      }
      return false
    },
  })

  document.addEventListener('click', (event) => {
    if (event.target.closest('[data-dismiss]')) event.target.closest('.said').remove()
  })

  // Nothing changes between the two halves of a click or tap, or it would be lost or hit something else: the change waits for
  // the next refresh. After 10 s it no longer waits: a menu of the browser may swallow the second half.
  let pressed = -Infinity
  document.addEventListener('pointerdown', () => { pressed = performance.now() }, true)
  for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => { pressed = -Infinity }, true)
  document.addEventListener('htmx:beforeSwap', ({ detail }) => {
    const isUnderPointer = 'live' in detail.elt.dataset || detail.target.id === 'palette-list'
    if (isUnderPointer && performance.now() - pressed < 10000) detail.shouldSwap = false
  })

  // Only the gateway's own pages and parts replace content, not a proxy's error or a refusal in plain text.
  const isOurs = (xhr) => xhr.getResponseHeader('X-Request-Id') !== null
  document.addEventListener('htmx:beforeSwap', (event) => {
    const { xhr, requestConfig, elt } = event.detail
    if (paused() && 'live' in elt.dataset && xhr.status === 200) {
      event.detail.shouldSwap = false
      waiting = [...xhr.responseText.matchAll(/<li id="(event-\d+)"/g)].filter(([, id]) => !document.getElementById(id)).length
      return show()
    }
    const isPage = (xhr.getResponseHeader('Content-Type') ?? '').startsWith('text/html')
    if (isOurs(xhr) && isPage) return
    event.detail.shouldSwap = false
    if (isOurs(xhr) && requestConfig.verb === 'post') say(xhr.responseText)
  })
  const say = (text) => {
    document.getElementById('refusal')?.remove()
    const notice = document.createElement('div')
    notice.id = 'refusal'
    notice.role = 'alert'
    notice.className = 'notice said signal-stop'
    notice.innerHTML = '<span class="signal signal-stop"></span><button type="button" class="btn btn-quiet" data-dismiss>Dismiss</button>'
    notice.firstChild.textContent = text
    document.getElementById('main').prepend(notice)
  }

  // After a form, focus goes to the field to correct. If the element that had it when the form was sent is gone, its row gets
  // the focus, or else the result of the action. A refresh may take the element away before the answer does.
  let had, row
  document.addEventListener('htmx:beforeRequest', (event) => {
    if (event.detail.requestConfig.verb !== 'post') return
    had = document.activeElement
    row = had.closest('tr')?.id
  })
  document.addEventListener('htmx:afterSettle', (event) => {
    if (event.detail.requestConfig.verb !== 'post') return
    const wrong = document.querySelector('[aria-invalid]')
    if (wrong) wrong.focus()
    else if (document.activeElement === document.body && had !== document.body) {
      const inRow = row && document.getElementById(row)?.querySelector('a, button')
      ;(inRow || document.querySelector('.said'))?.focus({ preventScroll: !inRow })
    }
  })

  // A link of a menu to a part of its page closes it.
  addEventListener('hashchange', () => document.querySelector('[popover]:popover-open')?.hidePopover())

  let pausedAt = ''
  let waiting = 0 // events that came while the page is paused
  const paused = () => 'paused' in root.dataset
  const refresh = () => {
    for (const part of document.querySelectorAll('[data-live]')) htmx.trigger(part, 'refresh')
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) refresh()
  })
  document.addEventListener('htmx:beforeRequest', (event) => {
    if (document.hidden && 'live' in event.detail.elt.dataset) event.preventDefault()
  })

  // Requests of the reader show that they are under way, if they take long.
  const busy = (on) => root.toggleAttribute('data-busy', on)
  document.addEventListener('htmx:beforeSend', ({ detail: { elt } }) => {
    if (!('live' in elt.dataset)) busy(true)
  })
  document.addEventListener('htmx:afterRequest', ({ detail: { elt } }) => {
    if (!('live' in elt.dataset)) busy(false)
  })
  window.addEventListener('beforeunload', () => busy(true))
  window.addEventListener('pageshow', () => busy(false))

  // A click on a pause button stops all refreshing of this page; the next one resumes it.
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-pause]')
    if (!button) return
    if (paused()) delete root.dataset.paused
    else root.dataset.paused = ''
    pausedAt = new Date().toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
    waiting = 0
    show()
    refresh()
  })

  let lost = false
  let answered = new Date() // time of the gateway's last answer
  const announce = (text) => {
    document.getElementById('announcer').textContent = text
  }
  const show = () => {
    document.getElementById('lost').hidden = !lost
    root.toggleAttribute('data-lost', lost)
    for (const element of document.querySelectorAll('[data-as-of]')) {
      element.textContent = 'as of ' + answered.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
    }
    for (const element of document.querySelectorAll('[data-waiting]')) element.textContent = waiting ? `, ${waiting} new` : ''
    for (const element of document.querySelectorAll('[data-new-events]')) {
      element.hidden = !waiting
      element.querySelector('[data-new-count]').textContent = waiting + (waiting === 1 ? ' new event' : ' new events')
      element.querySelector('[data-paused-at]').textContent = pausedAt
    }
    for (const state of document.querySelectorAll('[data-live-state]')) {
      state.hidden = state.dataset.liveState !== (paused() ? 'paused' : lost ? 'lost' : 'live')
    }
    for (const button of document.querySelectorAll('.page-tools [data-pause]')) button.textContent = paused() ? 'Resume' : 'Pause'
  }
  const setLost = (now) => {
    if (lost !== now) announce(now ? 'The gateway does not answer.' : 'The gateway answers again.')
    lost = now
    if (!lost) answered = new Date()
    show()
  }
  for (const name of ['htmx:sendError', 'htmx:timeout']) {
    document.addEventListener(name, ({ detail }) => {
      setLost(true)
      if (detail.requestConfig.verb === 'post') say('The gateway did not answer. Try again when it is back.')
    })
  }
  document.addEventListener('htmx:afterRequest', (event) => {
    const { xhr } = event.detail
    if (xhr.status > 0) setLost(xhr.status >= 502 && xhr.getResponseHeader('As-Of') === null || !isOurs(xhr))
  })
  // If the active project is switched elsewhere, the header shows it, unless the reader is about to switch it, too.
  document.addEventListener('htmx:afterRequest', (event) => {
    const active = event.detail.xhr.getResponseHeader('Active-Project')
    const select = document.getElementById('active-project')
    if (active === null || !select) return
    const name = decodeURIComponent(active)
    if (name === select.dataset.active) return
    const follows = select.value === select.dataset.active
    select.dataset.active = name
    if (!follows) return
    if (![...select.options].some((option) => option.value === name)) select.add(new Option(name || 'none', name))
    select.value = name
  })
  // While the database cannot be reached, the page says how old its data is.
  document.addEventListener('htmx:afterRequest', (event) => {
    const { xhr } = event.detail
    if (xhr.status === 0 || !isOurs(xhr)) return
    const since = xhr.getResponseHeader('As-Of')
    const old = document.getElementById('old')
    old.hidden = since === null
    if (since === null) return
    old.querySelector('[data-known]').textContent = 'as of ' + new Date(since).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  })
  const thousands = (digits) => Number(digits).toLocaleString('en')
  // Every answer updates the number of open alerts in the header.
  document.addEventListener('htmx:afterRequest', (event) => {
    const open = event.detail.xhr.getResponseHeader('Attention')
    const count = document.querySelector('[data-attention]')
    if (open === null || !count) return
    count.textContent = open === '0' ? '' : thousands(open)
    count.parentElement.title = open === '0' ? '' : thousands(open) + (open === '1' ? ' needs attention' : ' need attention')
  })
  // The tab's icon has the worst signal.
  document.addEventListener('htmx:afterRequest', (event) => {
    const worst = event.detail.xhr.getResponseHeader('Worst-Signal')
    const icon = document.querySelector('link[rel=icon]')
    if (worst !== null && icon.getAttribute('href') !== icon.dataset[worst]) icon.href = icon.dataset[worst]
  })
  // Likewise the number of open questions.
  document.addEventListener('htmx:afterRequest', (event) => {
    const open = event.detail.xhr.getResponseHeader('Asking')
    const link = document.querySelector('[data-asking]')
    if (open === null || !link) return
    link.hidden = open === '0'
    link.querySelector('b').textContent = thousands(open)
  })
  document.addEventListener('htmx:afterSettle', () => {
    const titled = document.querySelector('[data-title]') // a part may have a newer title than its page
    if (titled) document.title = titled.dataset.title
    show()
  })
  document.addEventListener('DOMContentLoaded', () => {
    show()
    const here = document.querySelector('.wide [aria-current]') // the current station of a long journey
    if (here) here.closest('.wide').scrollLeft = here.offsetLeft - innerWidth / 3
  })
})()
