// The form that tells the team about the chosen stories says how many they are. A list can be chosen as a whole.
(() => {
  const say = () => {
    const said = document.querySelector('[data-chosen]')
    const chosen = document.querySelectorAll('[data-choice]:checked').length
    const text = `Tell the team about ${chosen === 1 ? '1 story' : chosen + ' stories'}`
    if (said && chosen && said.textContent !== text) said.textContent = text
  }
  document.addEventListener('change', ({ target }) => {
    if ('choice' in target.dataset) say()
  })
  document.addEventListener('click', ({ target }) => {
    const list = target.closest('[data-choose]')?.closest('section')
    for (const box of list?.querySelectorAll('[data-choice]') ?? []) box.checked = true
    say()
  })
  document.addEventListener('htmx:afterSettle', say)
})()
