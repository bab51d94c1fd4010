// The overview's inbox takes a third of the window at most: further lines move into what is folded below them.
(() => {
  const fit = () => {
    const more = document.getElementById('attention-rest')
    const shown = more?.parentElement.querySelector(':scope > ul')
    if (!shown) return
    const folded = more.querySelector('ul')
    for (const line of folded.querySelectorAll(':scope > [data-moved]')) {
      delete line.dataset.moved
      shown.append(line)
    }
    const top = more.closest('.inbox-part').getBoundingClientRect().top
    const bottom = () => (more.hidden ? shown : more.querySelector('summary')).getBoundingClientRect().bottom
    let count = Number(more.dataset.more)
    const say = () => {
      more.hidden = count === 0
      more.querySelector('summary').textContent = count.toLocaleString('en') + ' more'
    }
    say()
    while (shown.children.length > 1 && bottom() - top > innerHeight / 3) {
      const line = shown.lastElementChild
      if (line.contains(document.activeElement)) break // it would lose the focus
      line.dataset.moved = ''
      folded.prepend(line)
      count++
      say()
    }
  }
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle', 'switchyard:afterMorph']) document.addEventListener(name, fit)
  addEventListener('resize', fit)
})()
