// The page Bot configuration: fills its form from the JSON API, shows the fields of the chosen transport, saves, and sends a
// test message. Secrets exist only in the API's answers and the fields.
(() => {
  const form = () => document.getElementById('bot-config')
  const groups = () => form().querySelectorAll('fieldset[data-transport]')

  const showGroup = () => {
    for (const group of groups()) group.hidden = group.dataset.transport !== form().elements.transport.value
  }

  const fill = (config) => {
    for (const [name, value] of Object.entries(config)) {
      const field = form().elements.namedItem(name)
      if (field) field.value = value ?? ''
    }
    showGroup()
  }

  const say = (id, ok, text) => {
    const status = document.getElementById(id)
    status.className = 'signal whitespace-normal ' + (ok ? 'signal-clear' : 'signal-stop')
    status.textContent = text
  }
  const sayNothing = (id) => {
    const status = document.getElementById(id)
    status.className = ''
    status.textContent = ''
  }

  // ask calls the API and returns its answer; failures have the form {ok: false, error}.
  const ask = async (path, options) => {
    try {
      const response = await fetch(path, { headers: { 'Content-Type': 'application/json' }, ...options })
      const text = await response.text()
      try {
        return JSON.parse(text)
      } catch {
        return { ok: false, error: text || 'status ' + response.status }
      }
    } catch {
      return { ok: false, error: 'The gateway does not answer.' }
    }
  }

  // once ignores further clicks on a button until it is done. The button is not disabled: that would lose the focus.
  const once = async (button, work) => {
    if (button.ariaBusy === 'true') return
    button.ariaBusy = 'true'
    try {
      await work()
    } finally {
      button.ariaBusy = 'false'
      htmx.trigger(document.getElementById('bot-state'), 'refresh')
    }
  }

  const load = async () => {
    const config = await ask(form().dataset.api)
    if (config.ok === false) say('bot-saved', false, config.error)
    else fill(config)
  }

  const save = async () => {
    const transport = form().elements.transport.value
    const config = { transport }
    for (const field of form().querySelectorAll(`fieldset[data-transport="${transport}"] input`)) {
      config[field.name] = field.value === '' ? null : field.value
    }
    sayNothing('bot-saved')
    const answer = await ask(form().dataset.api, { method: 'POST', body: JSON.stringify(config) })
    if (answer.ok) say('bot-saved', true, 'Saved. The bot was restarted.')
    else say('bot-saved', false, answer.error)
  }

  const test = async () => {
    sayNothing('bot-tested')
    const answer = await ask('/api/gateway/bot/test', { method: 'POST' })
    if (answer.ok) say('bot-tested', true, 'Sent.')
    else say('bot-tested', false, answer.error)
  }

  document.addEventListener('DOMContentLoaded', load)
  document.addEventListener('change', (event) => {
    if (event.target.id === 'transport') showGroup()
  })
  document.addEventListener('submit', (event) => {
    if (event.target !== form()) return
    event.preventDefault()
    once(form().querySelector('button'), save)
  })
  document.addEventListener('click', (event) => {
    if (event.target.id === 'bot-test') once(event.target, test)
  })

  // A form in the header replaces the page, with empty fields: what was typed is put back.
  let typed = null
  document.addEventListener('htmx:beforeSwap', (event) => {
    if (event.detail.target === document.body && form()) typed = Object.fromEntries(new FormData(form()))
  })
  document.addEventListener('htmx:afterSettle', () => {
    if (typed && form()) fill(typed)
    typed = null
  })
})()
