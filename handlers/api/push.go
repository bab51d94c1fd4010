package api

import (
	"encoding/json"
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// PushKey is the key with which browsers subscribe to what this gateway pushes.
func (a *API) PushKey(w http.ResponseWriter, r *http.Request) error {
	key, err := a.service.Push.Key(r.Context())
	return answer(w, http.StatusOK, map[string]any{"public_key": key}, err)
}

// AddDevice has messages pushed to the caller's browser.
func (a *API) AddDevice(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	device := domain.PushDevice{Endpoint: b.Text("endpoint")}
	name := "Browser"
	if given := b.OptionalText("name"); given != nil {
		name = *given
	}
	rules := eventsAndAlerts(b)
	raw, _ := b.Raw("keys")
	var keys struct{ P256dh, Auth string }
	if err := b.Err(); err != nil {
		return err
	}
	if json.Unmarshal(raw, &keys) != nil {
		return domain.Errorf(domain.Invalid, "keys: must be an object with p256dh and auth")
	}
	device.P256dh, device.Auth = keys.P256dh, keys.Auth
	t, err := a.service.Push.Add(r.Context(), name, device, rules)
	return answer(w, http.StatusCreated, a.encodeTarget(t, ""), err)
}
