package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/wire"
)

// messageBuilder makes the messages to targets. Messages about the same thing have the same id.
type messageBuilder struct {
	*Targets
	database string // its identity
}

func (m messageBuilder) id(t *domain.Target, parts ...string) string {
	return m.database + "_" + t.ID + "_" + strings.Join(parts, "_")
}

// digestID is the part of a message's id that identifies a digest, by its last event.
func digestID(upto int64) string { return "digest_" + strconv.FormatInt(upto, 10) }

// alertsID is that part for a digest of alerts only, which ends with the same event as the one before it.
func alertsID(upto int64, at time.Time) string {
	return digestID(upto) + "_" + strconv.FormatInt(at.UnixMilli(), 10)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// encodableTime returns a project server's time if JSON can have it, and instead for years after 9999.
func encodableTime(at, instead time.Time) time.Time {
	if at.Year() > 9999 {
		return instead
	}
	return at
}

func (m messageBuilder) event(t *domain.Target, e domain.Event) domain.Message {
	kind, d, words := e.Type.Kind(), e.Details(), domain.StageWords(m.pipelines.StageWord)
	project := "/projects/" + url.PathEscape(e.Project)
	path := project
	if d.StoryID != "" {
		path += "/stories/" + url.PathEscape(d.StoryID)
	}
	return domain.Message{
		ID: m.id(t, strconv.FormatInt(e.ID, 10)), Type: string(e.Type), At: encodableTime(e.At, e.ReceivedAt),
		Data:  e.AppendJSON(nil),
		Title: e.Project + ": " + words.Describe(e, d), Text: m.messenger.Describe(e, words),
		Link: m.link(path, project), Signal: kind.Signal,
	}
}

func (m messageBuilder) alert(t *domain.Target, a domain.Alert) domain.Message {
	data, _ := json.Marshal(wire.NewAlert(a)) // strings and numbers always encode
	return domain.Message{
		ID:   m.id(t, shortKey(a.Key()), strconv.FormatInt(a.Since.UnixMilli(), 10)),
		Type: "alert." + string(a.Kind), At: encodableTime(a.Since, clock.Now()), Data: data,
		Title: cmp.Or(a.Project, "Switchyard") + ": " + a.Kind.Word(),
		Text:  oneLine(a.Text()), Link: m.link(a.Link(), "/projects/"+url.PathEscape(a.Project)), Signal: a.Kind.Signal(),
	}
}

// gap says that the events before one are no longer kept.
func (m messageBuilder) gap(t *domain.Target, before, missed int64, at time.Time) domain.Message {
	text := domain.Count(missed, "event was", "events were") + " removed before this target could be told of them"
	data, _ := json.Marshal(map[string]any{
		"type": domain.FeedGap, "missed": missed, "timestamp_ms": at.UnixMilli(), "text": text,
	})
	return domain.Message{
		ID: m.id(t, "gap", strconv.FormatInt(before, 10)), Type: string(domain.FeedGap), At: at, Data: data,
		Title: "Switchyard: events are missing", Text: text, Link: m.link("/events"), Signal: domain.SignalCaution,
	}
}

// nestCounts returns counts for programs: of events by type and of alerts by kind. A move that finishes a story counts
// both as what it is and as finished.
func nestCounts(counts map[string]int) map[string]map[string]int {
	n := map[string]map[string]int{"events": {}, "alerts": {}}
	for key, count := range counts {
		kind, isAlert := strings.CutPrefix(key, domain.AlertCount)
		switch {
		case isAlert:
			n["alerts"][kind] = count
		case key == domain.MovedCount, key == domain.FinishedCount:
			n["events"][string(domain.StageTransition)] += count
		}
		if !isAlert && key != domain.MovedCount {
			n["events"][key] = count
		}
	}
	return n
}

// countOf returns the key under which an event is counted.
func (m messageBuilder) countOf(e domain.Event) string {
	if e.Type != domain.StageTransition {
		return string(e.Type)
	}
	if m.pipelines.Finishes(e) {
		return domain.FinishedCount
	}
	return domain.MovedCount
}

// maxDigestAlerts is how many alerts a digest lists; the others are counted.
const maxDigestAlerts = 15

// digest returns a digest of alerts and of the counted events up to one, and the message about it, which ends with
// additional lines if there are any.
func (m messageBuilder) digest(
	t *domain.Target, events map[string]int, upto int64, alerts []domain.Alert, others string, now time.Time,
) (domain.DigestRecord, domain.Message) {
	counts := maps.Clone(events)
	for alike, n := range t.Progress.Over {
		kind, _, _ := strings.Cut(alike, "/")
		counts[domain.AlertCount+kind] += n
	}
	r := domain.DigestRecord{
		ID: newTargetID(), Target: t.ID, Name: t.Name, At: now, After: t.Progress.Position, Upto: upto,
		DigestContent: domain.DigestContent{Rules: t.Rules, Alerts: []domain.DigestAlert{}},
	}
	var lines []string
	signal := domain.SignalNone
	for i, a := range alerts {
		counts[domain.AlertCount+string(a.Kind)]++
		text := oneLine(a.Text())
		switch {
		case i < maxDigestAlerts:
			lines = append(lines, "■ "+text)
		case i == maxDigestAlerts:
			lines = append(lines, fmt.Sprintf("and %d more", len(alerts)-i))
		}
		if len(r.Alerts) < domain.MaxAlerts {
			r.Alerts = append(r.Alerts, domain.DigestAlert{
				Key: a.Key(), Text: text, Link: a.Link(), Since: encodableTime(a.Since, now),
			})
		}
		signal = domain.SignalCaution
	}
	r.Text, r.Counts, r.Span = domain.Counts(counts).Describe(), counts, t.Rules.Span(!t.Progress.HeldAt.IsZero())
	said := r.Span + ": " + r.Text
	path := "/notifications/digests/" + r.ID
	id := m.id(t, digestID(upto))
	if t.Progress.DigestEvent == upto { // only alerts since the last one
		id = m.id(t, alertsID(upto, now))
	}
	text := said
	if others != "" {
		text, lines = said+"\n"+others, append(lines, others)
	}
	return r, domain.Message{
		ID: id, Type: "digest", At: now, Data: webhookData(text, m.link(path), path, nestCounts(counts)), Title: said,
		Text: strings.Join(append([]string{said}, lines...), "\n"), Link: m.link(path), Signal: signal,
	}
}

// webhookData is what a webhook gets in a message that is not about a single event or alert.
func webhookData(text, link, path string, counts any) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"text": text, "link": cmp.Or(link, path), "counts": counts})
	return data
}

func ruleText(t domain.Target) string {
	text, _ := json.Marshal(struct {
		Enabled bool `json:"enabled"`
		domain.TargetRules
	}{t.Enabled, t.Rules})
	return string(text)
}
