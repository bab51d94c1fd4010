package console

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/static"
	"switchyard/views"
)

// RemoveDevice stops pushing to one of the reader's browsers or, for an administrator, to any.
func (c *Console) RemoveDevice(w http.ResponseWriter, r *http.Request) error {
	err := c.service.Push.Remove(r.Context(), web.PathParam(r, "id"))
	notice := views.Notice{Text: "Nothing is pushed to this device any more."}
	return c.done(w, r, views.NotificationsURL, notice, err, "This device is gone.")
}

// Manifest describes the console as an app, which phones require before anything can be pushed to them.
func (c *Console) Manifest(w http.ResponseWriter, r *http.Request) error {
	icon := func(size string) map[string]string {
		return map[string]string{
			"src": static.Path("app-" + size + ".png"), "sizes": size + "x" + size, "type": "image/png", "purpose": "any",
		}
	}
	return c.serveApp(w, "application/manifest+json", domain.EncodeJSON(map[string]any{
		"id": views.OverviewURL, "name": "Switchyard", "short_name": "Switchyard", "start_url": views.OverviewURL,
		"scope": views.OverviewURL, "display": "standalone", "background_color": "#f4f6fa", "theme_color": "#1d4ed8",
		"icons": []any{icon("192"), icon("512")},
	}))
}

// PushWorker is the script that shows pushed messages. It is at the top level, so that it may open all pages.
func (c *Console) PushWorker(w http.ResponseWriter, r *http.Request) error {
	file, _ := static.Lookup(static.Path("push-worker.js"))
	return c.serveApp(w, file.Type, file.Content)
}

func (c *Console) serveApp(w http.ResponseWriter, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "private, no-cache")
	web.WriteBytes(w, http.StatusOK, body)
	return nil
}
