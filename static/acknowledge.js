// All Acknowledge buttons of a page share a form, which asks for how long.
(() => {
  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[form="acknowledge"]')
    if (!button) return
    event.preventDefault()
    const { form } = button
    const key = form.querySelector('[name="key"]')
    key.value = button.value
    key.disabled = false
    form.parentElement.showPopover({ source: button })
    form.querySelector('.entry').focus()
  })
  document.addEventListener('submit', ({ target }) => {
    if (target.id === 'acknowledge') target.parentElement.hidePopover()
  })
})()
