package api

import (
	"net/http"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// alertJSON is an alert as the API shows it. Fields that do not apply to its kind are null.
type alertJSON struct {
	Key          string               `json:"key"`
	Kind         domain.AlertKind     `json:"kind"`
	Project      *string              `json:"project"`
	Agent        *string              `json:"agent"`
	StoryID      *string              `json:"story_id"`
	StoryName    *string              `json:"story_name"`
	Stage        *string              `json:"stage"`
	Text         string               `json:"text"`
	SinceMS      int64                `json:"since_ms"`
	Link         string               `json:"link"` // the console's page about it
	Acknowledged *acknowledgementJSON `json:"acknowledged"`
}

type acknowledgementJSON struct {
	By      string `json:"by"`
	AtMS    int64  `json:"at_ms"`
	UntilMS *int64 `json:"until_ms"` // null until the alert ends
}

func encodeAlert(a domain.Alert) alertJSON {
	encoded := alertJSON{
		Key: a.Key(), Kind: a.Kind, Project: wire.OrNull(a.Project), Agent: wire.OrNull(a.Agent), Stage: wire.OrNull(a.Stage),
		Text: a.Text(), SinceMS: a.Since.UnixMilli(), Link: a.Link(),
	}
	if a.Story != nil {
		encoded.StoryID, encoded.StoryName = &a.Story.StoryID, &a.Story.StoryName
	}
	if k := a.Acknowledged; k != nil {
		encoded.Acknowledged = &acknowledgementJSON{k.By, k.At.UnixMilli(), wire.TimeOrNull(k.Until)}
	}
	return encoded
}

func (a *API) ListAlerts(w http.ResponseWriter, r *http.Request) error {
	alerts := a.service.Alerts.List(r.Context())
	items := make([]alertJSON, len(alerts.Items))
	for i, alert := range alerts.Items {
		items[i] = encodeAlert(alert)
	}
	return answer(w, http.StatusOK, struct {
		More  int         `json:"more"`
		Items []alertJSON `json:"items"`
	}{alerts.More, items}, nil)
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
