package service

import (
	"context"
	"fmt"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
	"switchyard/internal/flow"
)

// Sentence says the flow of projects, or of all without names, on the days of a zone in a sentence.
func (f *Flow) Sentence(ctx context.Context, zone *time.Location, projects ...string) (string, error) {
	q := domain.FlowQuery{Projects: projects, Days: domain.FlowDays, Ahead: domain.FlowAhead, Zone: zone}
	r, err := f.Report(ctx, q)
	if err != nil {
		return "", err
	}
	finished := len(r.Stories) + r.More
	text := fmt.Sprintf("%s finished in %d days", domain.Count(finished, "story", "stories"), q.Days)
	if p := r.Percentiles; p != nil {
		text += fmt.Sprintf(": half within %s, 85 %% within %s", domain.Count(p[0], "day", "days"),
			domain.Count(p[2], "day", "days"))
	} else {
		text += ", too few to say how long a story takes"
	}
	return text + fmt.Sprintf("; %d in work.", len(r.Ageing)), nil
}

// Forecast says in sentences how many stories of a project will be finished in the next two weeks, and when so many
// items will be; 0 items are its open stories.
func (f *Flow) Forecast(ctx context.Context, project string, items int) (string, error) {
	q := domain.FlowQuery{
		Projects: []string{project}, Days: domain.FlowDays, Ahead: domain.FlowAhead, Items: items, Zone: time.UTC,
	}
	r, err := f.Report(ctx, q)
	if err != nil {
		return "", err
	}
	if r.HowMany == nil {
		return fmt.Sprintf("No forecast: %s finished in %s so far; it needs %d of each.",
			domain.Count(r.Finished, "story was", "stories were"), domain.Count(r.Sample, "day", "days"), flow.Enough), nil
	}
	date := "after more than a year"
	if days := r.When[2]; days > 0 {
		date = "by " + clock.Now().UTC().AddDate(0, 0, days).Format("2 January")
	}
	return fmt.Sprintf("%s: 85 %% %s. In %d days, 85 %%: %d or more.", domain.Count(r.Items, "story", "stories"), date,
		r.Ahead, r.HowMany[2]), nil
}
