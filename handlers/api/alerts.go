package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

func (a *API) ListAlerts(w http.ResponseWriter, r *http.Request) error {
	alerts := a.service.Alerts.List(r.Context())
	return answer(w, http.StatusOK, struct {
		More  int          `json:"more"`
		Items []wire.Alert `json:"items"`
	}{alerts.More, domain.Map(alerts.Items, wire.NewAlert)}, nil)
}

func (a *API) AcknowledgeAlert(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	key, text := body.Text("key"), body.OptionalText("for")
	var duration time.Duration
	err := body.Err()
	if err == nil && text != nil {
		duration, err = domain.ParseAcknowledgedFor(*text)
	}
	if err != nil {
		return err
	}
	return ok(w, a.service.Alerts.Acknowledge(r.Context(), key, duration))
}

func (a *API) ReopenAlert(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	key := body.Text("key")
	if err := body.Err(); err != nil {
		return err
	}
	return ok(w, a.service.Alerts.Reopen(r.Context(), key))
}
