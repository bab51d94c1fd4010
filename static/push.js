// Has messages pushed to this browser, or says why that is not possible.
(() => {
  const start = async (form) => {
    const says = form.querySelector('[data-push-says]')
    const button = form.querySelector('[data-push-on]')
    const refuse = (text) => {
      says.textContent = text
      button.hidden = true
    }
    if (!window.isSecureContext) return refuse('Browsers push only to pages by https, or on this machine.')
    if (!('PushManager' in window) || !('serviceWorker' in navigator)) {
      return refuse('This browser cannot be pushed to here. On an iPhone, share this page, choose “Add to Home Screen”, and open it from there.')
    }
    if (Notification.permission === 'denied') {
      return refuse('This browser was told not to show notifications of this address. Allow them in its settings for this page.')
    }
    if (document.querySelector(`[data-push-device="${CSS.escape(localStorage.getItem('push-device') ?? '')}"]`)) {
      says.textContent = 'This browser is on. Choose again and save to change what it gets; Remove ends it.'
      button.textContent = 'Save'
    }
    const turnOn = async () => {
      button.disabled = true
      try {
        const { public_key: key } = await (await fetch(form.dataset.pushApi)).json()
        if (await Notification.requestPermission() !== 'granted') throw new Error('The browser did not allow it.')
        const worker = await navigator.serviceWorker.register(form.dataset.push)
        await navigator.serviceWorker.ready
        const bytes = Uint8Array.from(atob(key.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
        const old = await worker.pushManager.getSubscription()
        if (old && new Uint8Array(old.options.applicationServerKey).join() !== bytes.join()) await old.unsubscribe() // of another key
        const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes })
        const { endpoint, keys } = subscription.toJSON()
        const brand = navigator.userAgentData?.brands.at(-1)?.brand ?? /Firefox|Safari/.exec(navigator.userAgent)?.[0] ?? 'Browser'
        const answer = await fetch(form.dataset.pushApi, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ endpoint, keys, name: brand, events: [], alerts: new FormData(form).getAll('alerts'), projects: null }),
        })
        if (!answer.ok) throw new Error(await answer.text())
        localStorage.setItem('push-device', (await answer.json()).id)
        location.reload()
      } catch (error) {
        says.textContent = 'Not turned on: ' + error.message
        button.disabled = false
      }
    }
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      turnOn()
    })
  }
  const show = () => {
    for (const form of document.querySelectorAll('[data-push]:not([data-started])')) {
      form.dataset.started = ''
      start(form)
    }
  }
  for (const name of ['DOMContentLoaded', 'htmx:afterSettle']) document.addEventListener(name, show)
})()
