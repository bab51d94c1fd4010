// Choosing stories opens the form that tells the team about them, which says how many they are.
(() => {
  const say = () => {
    const form = document.getElementById('tell-team')
    const said = form?.querySelector('[data-chosen]')
    if (!said) return
    const chosen = document.querySelectorAll('[data-choice]:checked').length
    if (chosen) form.open = true
    said.textContent = chosen ? `It is about ${chosen === 1 ? 'the story that is' : `the ${chosen} stories that are`} chosen.` : said.dataset.none
  }
  document.addEventListener('change', ({ target }) => {
    if ('choice' in target.dataset) say()
  })
  document.addEventListener('htmx:afterSettle', say)
})()
