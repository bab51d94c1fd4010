package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// previewDays is how many days a preview looks back, and previewEvents at how many events, in pages of previewPage.
	previewDays, previewEvents, previewPage = 7, 3000, 1000
)

// week is what has been found for a preview.
type week struct {
	target     domain.Target
	from, now  time.Time
	zone       *time.Location
	days       map[time.Time]int // messages
	together   map[time.Time]map[string]int
	alone      int
	lastAt     time.Time
	lastSample func() domain.Message
}

func (w *week) add(at time.Time, count string, message func() domain.Message) {
	told := w.target.Rules.TellsAt(at.In(w.zone))
	if at.Before(w.from) || told.After(w.now) {
		return
	}
	if at.After(w.lastAt) {
		w.lastAt, w.lastSample = at, message
	}
	day := domain.StartOfDay(told)
	switch {
	case !told.After(at):
		w.alone++
		w.days[day]++
		return
	case w.together[told] == nil:
		w.together[told] = map[string]int{}
		w.days[day]++
	}
	w.together[told][count]++
}

// LastWeek returns what a target with these rules would have received. It returns Invalid for invalid rules.
func (s Deliveries) LastWeek(ctx context.Context, rules domain.TargetRules) (p domain.TargetPreview, err error) {
	if err := rules.Check(); err != nil {
		return p, err
	}
	now := clock.Now()
	w := &week{
		target: domain.Target{Rules: rules}, from: now.AddDate(0, 0, -previewDays), now: now, zone: rules.Zone(),
		days: map[time.Time]int{}, together: map[time.Time]map[string]int{},
	}
	if p.More, err = s.addEvents(ctx, w); err != nil {
		return p, err
	}
	if slices.Contains(rules.Alerts, domain.AlertQuestion) {
		asked, err := s.questions.List(ctx, "", false, previewPage)
		if err != nil {
			return p, err
		}
		for _, q := range asked {
			if a := questionAlert(q); w.target.Wants(a) {
				message := func() domain.Message { return s.messages().alert(&w.target, a) }
				w.add(q.AskedAt, domain.AlertCount+string(a.Kind), message)
			}
		}
	}
	p.Messages, p.Together = w.alone+len(w.together), len(w.together)
	for day, n := range w.days {
		if n > p.Most || n == p.Most && day.After(p.Busiest) {
			p.Busiest, p.Most = day, n
		}
	}
	switch {
	case rules.Digest != domain.NoDigest && p.Messages > 0:
		last := slices.MaxFunc(slices.Collect(maps.Keys(w.together)), time.Time.Compare)
		p.Sample.Title = rules.Span(false) + ": " + domain.Counts(w.together[last]).Describe()
	case p.Messages > 0:
		p.Sample = w.lastSample()
	}
	return p, nil
}

func (s Deliveries) messages() messageBuilder { return messageBuilder{Targets: s.targets} }

// addEvents adds the newest events of the week, and reports whether there are more.
func (s Deliveries) addEvents(ctx context.Context, w *week) (more bool, err error) {
	m := s.messages()
	query := domain.EventQuery{
		ByTime: true, From: w.from.UnixMilli(), To: w.now.UnixMilli() + 1, Limit: previewPage,
	}
	for read := 0; read < previewEvents; {
		page, err := s.targets.events.Page(ctx, query)
		if err != nil {
			return false, err
		}
		for _, e := range page.Events {
			kinds := 0
			if w.target.Rules.WantsEvent(e, m.pipelines.Finishes) {
				kinds++
			}
			if a := e.Type.Kind().Alert; a != "" && w.target.Wants(domain.Alert{Kind: a, Project: e.Project, Target: "-"}) {
				kinds++ // the alert that it began
			}
			for range kinds {
				w.add(e.At, m.countOf(e), func() domain.Message { return m.event(&w.target, e) })
			}
		}
		if !page.More || len(page.Events) == 0 {
			return false, nil
		}
		read += len(page.Events)
		oldest := page.Events[len(page.Events)-1]
		query.BeforeAt, query.Before = oldest.At.UnixMilli(), oldest.ID
	}
	return true, nil
}
