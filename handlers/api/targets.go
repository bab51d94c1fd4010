package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

type targetJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url"` // without its secrets
	domain.TargetRules
	Enabled bool   `json:"enabled"`
	Secret  string `json:"secret,omitempty"` // of a webhook, when it is new
	Owner   string `json:"owner,omitempty"`  // of a device, in the list
}

func (a *API) encodeTarget(t domain.Target, secret domain.Secret) targetJSON {
	t.Rules.Events = append([]domain.EventType{}, t.Rules.Events...)
	t.Rules.Alerts = append([]domain.AlertKind{}, t.Rules.Alerts...)
	return targetJSON{t.ID, t.Name, a.service.Targets.Shown(t.URL), t.Rules, t.Enabled, secret.Reveal(), ""}
}

// ListTargets lists the targets of notifications, by name, and then everybody's devices, without their endpoints.
func (a *API) ListTargets(w http.ResponseWriter, r *http.Request) error {
	found, err := a.service.Targets.List(r.Context())
	if err != nil {
		return err
	}
	list := domain.Map(found, func(t domain.Target) targetJSON { return a.encodeTarget(t, "") })
	own, others, err := a.service.Push.Devices(r.Context())
	for _, t := range slices.Concat(own, others) {
		device := a.encodeTarget(t, "")
		device.URL, device.Owner = "webpush:…", a.service.Push.OwnerOf(t)
		list = append(list, device)
	}
	return answer(w, http.StatusOK, map[string]any{"targets": list}, err)
}

// CreateTarget adds a target. A webhook's secret is shown only in this answer.
func (a *API) CreateTarget(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	t, err := targetFields(b, b.Text)
	if err != nil {
		return err
	}
	t, err = a.service.Targets.Add(r.Context(), t)
	return answer(w, http.StatusCreated, a.encodeTarget(t, t.Secret), err)
}

// ChangeTarget replaces what a target gets; without url it keeps its address.
func (a *API) ChangeTarget(w http.ResponseWriter, r *http.Request) error {
	b := web.DecodeJSON(w, r, web.MaxBody)
	t, err := targetFields(b, func(name string) string { return wire.Text(b.OptionalText(name)) })
	if err != nil {
		return err
	}
	t, secret, err := a.service.Targets.Change(r.Context(), web.PathParam(r, "id"), t)
	return answer(w, http.StatusOK, a.encodeTarget(t, secret), err)
}

// targetFields reads a target, its address with url. Other absent fields have their defaults.
func targetFields(b *web.Body, url func(name string) string) (t domain.Target, err error) {
	t.Name = b.Text("name")
	t.Rules = eventsAndAlerts(b)
	text := func(name, absent string) string {
		if value := b.OptionalText(name); value != nil {
			return *value
		}
		return absent
	}
	t.Rules.Digest = domain.DigestInterval(text("digest", string(domain.NoDigest)))
	t.Rules.DigestAt, t.Rules.TimeZone = text("digest_at", "08:00"), text("time_zone", "UTC")
	t.Enabled = b.OptionalBool("enabled")
	if raw, given := b.Raw("enabled"); !given || string(raw) == "null" {
		t.Enabled = true
	}
	if raw, given := b.Raw("quiet"); given && json.Unmarshal(raw, &t.Rules.Quiet) != nil {
		return t, domain.Errorf(domain.Invalid, "quiet: must be null or an object with from, to and perhaps days")
	}
	t.URL = domain.Secret(url("url"))
	return t, b.Err()
}

// eventsAndAlerts reads what a target gets. Absent fields mean none, and all projects.
func eventsAndAlerts(b *web.Body) (rules domain.TargetRules) {
	for _, kind := range b.OptionalTexts("events") {
		rules.Events = append(rules.Events, domain.EventType(kind))
	}
	for _, kind := range b.OptionalTexts("alerts") {
		rules.Alerts = append(rules.Alerts, domain.AlertKind(kind))
	}
	if raw, given := b.Raw("projects"); given && string(raw) != "null" {
		rules.Projects = append([]string{}, b.OptionalTexts("projects")...)
	}
	return rules
}

// NewTargetSecret gives a webhook a new secret.
func (a *API) NewTargetSecret(w http.ResponseWriter, r *http.Request) error {
	secret, err := a.service.Targets.NewSecret(r.Context(), web.PathParam(r, "id"))
	return answer(w, http.StatusOK, map[string]any{"secret": secret.Reveal()}, err)
}

type deliveryJSON struct {
	AtMS    int64   `json:"at_ms"`
	ID      string  `json:"id"`
	Attempt int     `json:"attempt"`
	Status  *int    `json:"status"` // null without an answer
	Error   *string `json:"error"`  // null if it was accepted
	MS      int64   `json:"ms"`
}

// ListDeliveries lists the last attempts to send messages to a target, newest first.
func (a *API) ListDeliveries(w http.ResponseWriter, r *http.Request) error {
	query := web.ParseQuery(r)
	limit := query.Number("limit", 50, 1, domain.MaxDeliveries)
	if err := query.Err(); err != nil {
		return err
	}
	found, err := a.service.Deliveries.List(r.Context(), web.PathParam(r, "id"), int(limit))
	list := domain.Map(found, func(d domain.Delivery) deliveryJSON {
		return deliveryJSON{
			d.At.UnixMilli(), d.MessageID, d.Attempt, wire.OrNull(d.Status), wire.OrNull(d.Error), d.Took.Milliseconds(),
		}
	})
	return answer(w, http.StatusOK, map[string]any{"deliveries": list}, err)
}
