// Shows messages that the gateway pushes, and opens their pages. It does nothing else: it has no part in loading pages.
self.addEventListener('push', (event) => {
  const { title, body, link, tag } = event.data.json()
  event.waitUntil(self.registration.showNotification(title, { body, tag, data: link }))
})
self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  const link = new URL(event.notification.data || '/', self.location.origin)
  if (link.origin === self.location.origin) event.waitUntil(self.clients.openWindow(link.href))
})
