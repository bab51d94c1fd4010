// Keys answer the question that has the focus: a allows, d denies, 1 to 9 choose, r adds a note. A text that is folded
// unfolds first.
(() => {
  // The next question takes the place of one that was answered: the rest of a double click does not answer it, too.
  document.addEventListener('click', (event) => {
    if (event.detail > 1 && event.target.closest('[data-question] button')) event.preventDefault()
  })
  // Own words are picked as soon as somebody writes them.
  document.addEventListener('input', (event) => {
    const own = event.target.matches('.own .input') && event.target.closest('.own').querySelector('[type=radio]')
    if (own) own.checked = true
    say()
  })
  // A button that sends several labels of one choice says which, and beside one that sends several answers stands how many
  // there are.
  const say = () => {
    for (const together of document.querySelectorAll('[data-together]')) {
      const choices = [...together.closest('form').querySelectorAll('.choice')]
      const answered = choices.filter((choice) => choice.querySelector(':checked') || choice.querySelector('.own .input').value.trim())
      together.textContent = `${answered.length} of ${choices.length} answered; they go together`
    }
    for (const button of document.querySelectorAll('[data-sends]')) {
      const picked = [...button.form.querySelectorAll('label:has(:checked) b')].map((label) => label.textContent.trim())
      const own = button.form.querySelector('.own .input').value.trim()
      if (own) picked.push('“' + own + '”')
      button.textContent = picked.length ? 'Send: ' + picked.join(', ') : 'Send'
    }
  }
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) document.addEventListener(name, say)
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.target.closest('[data-question]')?.querySelector('form')?.requestSubmit()
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input:not([type=radio], [type=checkbox]), textarea, select')) return
    if (localStorage.getItem('keys') === 'off') return
    const question = event.target.closest('[data-question]')
    if (!question) return
    const key = event.key.toLowerCase()
    const answer = (selector) => {
      const button = question.querySelector(selector)
      if (!button?.checkVisibility()) return // on a phone the overview does not show all of it
      event.preventDefault()
      button.click()
    }
    const folded = question.querySelector('details.middle:not([open])')
    if (key === 'a' && folded) folded.open = true
    else if (key === 'a') answer('button[value="allow"]')
    else if (key === 'd') answer('button[value="deny"]')
    else if (key === 'r' && question.querySelector('.answers details')) {
      event.preventDefault()
      question.querySelector('.answers details').open = true
      question.querySelector('.answers input').focus()
    } else if (/^[1-9]$/.test(key)) {
      const choice = event.target.closest('.choice') ?? question.querySelector('.choice')
      const option = choice?.querySelector(`input[value="${key}"]`)
      if (option) {
        event.preventDefault()
        option.click()
        option.focus()
      } else answer(`:is(button[name="option"], .choice button)[value="${key}"]`)
    }
  })
})()
