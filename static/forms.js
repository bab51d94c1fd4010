// A second click does nothing while the first is under way: a POST form is sent only once at a time, and shows that it is
// busy.
(() => {
  const busy = new WeakSet()
  const isSent = (form) => form instanceof HTMLFormElement && form.method === 'post'
  const begin = (form) => {
    busy.add(form)
    form.ariaBusy = 'true'
  }
  const end = (form) => {
    busy.delete(form)
    form.ariaBusy = null
  }
  document.addEventListener('submit', (event) => {
    const form = event.target
    if (!isSent(form)) return
    if (busy.has(form)) {
      event.preventDefault()
      event.stopImmediatePropagation()
    } else if (!form.matches('[data-hx-boost], [data-hx-post], [data-api]')) {
      begin(form) // until the browser leaves the page
    }
  }, true)
  document.addEventListener('htmx:beforeSend', ({ detail: { elt } }) => {
    if (isSent(elt)) begin(elt)
  })
  document.addEventListener('htmx:afterRequest', ({ detail: { requestConfig: { elt } } }) => { // the form, also if it is no longer on the page
    if (!isSent(elt)) return
    end(elt)
    document.querySelector('.row-menu:popover-open')?.hidePopover() // and the dialog that it has opened: it is done
  })
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) for (const form of document.forms) end(form)
  })
})()
