// A card of a board is moved to another stage. A mouse lifts it by some pixels, a finger by resting on it, since it scrolls
// otherwise. By keyboard, space lifts it, the arrow keys choose, space drops it and Escape puts it back. The gateway decides: a
// refused card is back where it was, with a word.
(() => {
  const threshold = 6 // pixels that a mouse moves at least
  const rest = 400 // ms that a finger rests on a card
  const edge = 56 // pixels from the side of the window or the board where these scroll

  const form = () => document.getElementById('drag') // what the form is made of; only where the reader can move stories
  const panel = () => document.getElementById('drag-said')
  const stages = () => [...document.querySelectorAll('.board > [data-stage]')]
  const stageOf = (card) => card.closest('[data-stage]')
  const named = (name) => stages().find((stage) => stage.dataset.stage === name)
  const title = (stage) => stage.querySelector('h3 :is(bdi, [dir])').textContent.trim()
  const announce = (text) => { document.getElementById('announcer').textContent = text }

  let pressed = null // a pointer on a card that it may lift: { id, card, x, y, timer }
  let lifted = null // { id: of the card, name, from, to, pointer, ghost }: stages by name, to is '' over none
  const card = () => document.getElementById(lifted.id)

  const show = (name, text, keys = false) => {
    const [bold, rest, hints] = panel().children
    bold.textContent = name
    rest.textContent = text
    hints.hidden = !keys
    panel().hidden = false
  }
  // refuses says why no card is dropped on a stage.
  const refuses = (stage) => stage?.dataset.fixed ?? stage?.dataset.other
  const mark = () => {
    for (const stage of stages()) {
      const { stage: name } = stage.dataset
      const fixed = refuses(stage)
      stage.classList.toggle('may', !fixed && name !== lifted.from)
      stage.classList.toggle('no', Boolean(fixed))
      stage.classList.toggle('on', name === lifted.to)
    }
    card().classList.add('lifted')
  }
  const end = () => {
    for (const stage of stages()) stage.classList.remove('may', 'no', 'on')
    card()?.classList.remove('lifted')
    lifted.ghost?.remove()
    panel().hidden = true
    lifted = null
  }
  const putBack = (words) => {
    const { name, from } = lifted
    const text = words ?? `is back in ${title(named(from))}.`
    end()
    announce(`${name} ${text}`)
    if (words) show(name, text)
  }
  // choose makes a stage the one that the card would be dropped on.
  const choose = (name) => {
    const stage = named(name)
    const fixed = refuses(stage)
    const to = fixed || !stage ? '' : name
    const text = fixed || stage && (name === lifted.from ? `${title(stage)}, where it is` : `${title(stage)}: ${stage.dataset.writes}`) || ''
    if (to === lifted.to && !fixed) return
    lifted.to = to
    mark()
    show(lifted.name, text, !lifted.pointer)
    if (!lifted.pointer) announce(text)
    if (!lifted.pointer) stage.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }
  // lift takes the card up, or says why that is not possible.
  const lift = (element, pointer) => {
    const { id } = element
    const name = element.querySelector('a').textContent.trim().replace(/\s+/g, ' ')
    const { stage: from, fixed } = stageOf(element).dataset
    if (fixed) {
      show(name, 'is not moved here. ' + fixed)
      announce(`${name} is not moved here. ${fixed}`)
      return false
    }
    lifted = { id, name, from, to: from, pointer, ghost: null }
    if (pointer) {
      const box = element.getBoundingClientRect()
      lifted.ghost = element.cloneNode(true)
      lifted.ghost.removeAttribute('id')
      lifted.ghost.classList.add('ghost')
      lifted.ghost.ariaHidden = 'true'
      lifted.ghost.style.width = box.width + 'px'
      lifted.grip = { x: pointer.x - box.left, y: pointer.y - box.top }
      document.body.append(lifted.ghost)
      requestAnimationFrame(follow)
    }
    mark()
    const open = stages().filter((stage) => stage.matches('.may')).map(title).join(', ')
    show(name, open ? `is lifted. It may go to ${open}.` : 'is lifted, but no stage takes it.', !pointer)
    announce(`${name} is lifted. It may go to ${open}. The arrow keys choose, space drops it, Escape puts it back.`)
    return true
  }
  // follow puts the lifted card under the pointer, chooses the stage there, and scrolls near the sides.
  const follow = () => {
    if (!lifted?.pointer) return
    const { x, y } = lifted.pointer
    lifted.ghost.style.left = x - lifted.grip.x + 'px'
    lifted.ghost.style.top = y - lifted.grip.y + 'px'
    const near = (at, from, to) => at < from + edge ? -1 : at > to - edge ? 1 : 0
    const board = document.querySelector('.board')
    const box = board.getBoundingClientRect()
    board.scrollBy({ left: 12 * near(x, Math.max(0, box.left), Math.min(innerWidth, box.right)), behavior: 'instant' })
    scrollBy({ top: 12 * near(y, 0, innerHeight), behavior: 'instant' })
    choose(document.elementFromPoint(x, y)?.closest('.board > [data-stage]')?.dataset.stage)
    requestAnimationFrame(follow)
  }
  const drop = () => {
    const { name, from, to } = lifted
    if (!to || to === from) return putBack()
    const sent = document.createElement('form')
    for (const { name, value } of form().attributes) sent.setAttribute(name, value)
    sent.id = 'drag-sent'
    sent.method = 'post'
    sent.action = card().querySelector('a').href
    for (const [name, value] of Object.entries({ do: 'move', stage: to, was: from, next: form().dataset.next })) {
      const field = document.createElement('input')
      Object.assign(field, { type: 'hidden', name, value })
      sent.append(field)
    }
    const element = card()
    end()
    element.classList.add('lifted') // until the answer shows where it is
    announce(`${name} moves to ${title(named(to))}.`)
    form().after(sent)
    htmx.process(sent)
    sent.requestSubmit()
  }

  const release = () => {
    clearTimeout(pressed?.timer)
    pressed = null
  }
  document.addEventListener('pointerdown', (event) => {
    if (!form()) return
    if (!lifted) panel().hidden = true
    const element = event.target.closest('.board .card')
    if (!element || lifted || event.button !== 0 || !event.isPrimary) return
    pressed = { id: event.pointerId, card: element, x: event.clientX, y: event.clientY }
    if (event.pointerType !== 'touch') return
    pressed.timer = setTimeout(() => {
      const { id, card, x, y } = pressed
      release()
      lift(card, { id, x, y })
    }, rest)
  })
  document.addEventListener('pointermove', (event) => {
    const at = { id: event.pointerId, x: event.clientX, y: event.clientY }
    if (lifted?.pointer?.id === at.id) {
      lifted.pointer = at
    } else if (pressed?.id === at.id && Math.hypot(at.x - pressed.x, at.y - pressed.y) > threshold) {
      const { card, x, y } = pressed
      release()
      if (event.pointerType !== 'touch' && lift(card, { id: at.id, x, y })) lifted.pointer = at
    }
  })
  document.addEventListener('pointerup', (event) => {
    release()
    if (lifted?.pointer?.id !== event.pointerId) return
    const stop = (click) => {
      click.preventDefault()
      click.stopImmediatePropagation()
    }
    addEventListener('click', stop, { capture: true, once: true }) // the card that is dropped is a link
    setTimeout(() => removeEventListener('click', stop, true), 50)
    choose(document.elementFromPoint(event.clientX, event.clientY)?.closest('.board > [data-stage]')?.dataset.stage)
    drop()
  })
  document.addEventListener('pointercancel', ({ pointerId }) => {
    release()
    if (lifted?.pointer?.id === pointerId) putBack()
  })
  document.addEventListener('touchmove', (event) => {
    if (lifted?.pointer) event.preventDefault() // the finger moves the card, not the page
  }, { passive: false })
  for (const name of ['dragstart', 'contextmenu']) {
    document.addEventListener(name, (event) => {
      if (name === 'dragstart' ? form() && event.target.closest?.('.board .card') : lifted?.pointer) event.preventDefault()
    })
  }

  document.addEventListener('keydown', (event) => {
    if (!form()) return
    const { key, target } = event
    if (!lifted) {
      panel().hidden = true
      if (key !== ' ' || !target.matches('.board .card a')) return
      event.preventDefault()
      lift(target.closest('.card'), null)
      return
    }
    if (key === 'Escape') putBack()
    else if (lifted.pointer) return
    else if (key === ' ' || key === 'Enter') drop()
    else if (key.startsWith('Arrow')) {
      const open = stages().filter((stage) => !refuses(stage)).map((stage) => stage.dataset.stage)
      const step = key === 'ArrowRight' || key === 'ArrowDown' ? 1 : -1
      choose(open[Math.max(0, Math.min(open.length - 1, open.indexOf(lifted.to) + step))])
    } else return
    event.preventDefault()
    event.stopImmediatePropagation()
  }, true)
  document.addEventListener('focusout', () => {
    // A refresh may take the focus for a moment.
    setTimeout(() => {
      if (lifted && !lifted.pointer && !card()?.contains(document.activeElement)) putBack()
    })
  })

  // What a refresh has changed is shown, and the drag goes on; it ends if the story is somewhere else by now.
  document.addEventListener('htmx:afterSwap', () => {
    if (!lifted) return
    if (card() && stageOf(card())?.dataset.stage === lifted.from) return mark()
    lifted.pointer &&= null
    const { name } = lifted
    end()
    show(name, 'was moved meanwhile.')
    announce(`${name} was moved meanwhile.`)
  })
  document.addEventListener('htmx:afterRequest', ({ detail: { elt } }) => {
    if (elt.id !== 'drag-sent') return
    elt.remove()
    document.querySelector('.card.lifted')?.classList.remove('lifted')
  })
})()
