package domain

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// clashTime is how long a story in work must conflict before that is an alert, unmergedTime how long one must be
	// done and not merged.
	clashTime, unmergedTime = 10 * time.Minute, time.Hour
)

// overdueWork returns what has long been wrong with the work on a pipeline's stories, and until when that is all.
func overdueWork(p *ProjectPipeline, now time.Time) (found []Alert, until time.Time) {
	until = now.Add(limitsLifetime)
	sum := p.Summary()
	for i := sum.From; i < min(sum.To+1, len(p.Stages)); i++ {
		stage := &p.Stages[i]
		for j := range stage.Items {
			item := &stage.Items[j]
			if item.Work == nil {
				continue
			}
			a := Alert{
				Project: p.Project, Story: item, Stage: stage.Name, StageTitle: stage.Title(),
				Base: cmp.Or(p.Board.Branch, "the base"),
			}
			limit := clashTime
			switch clash, unmerged := item.Work.Clash, item.Work.Unmerged; {
			case i < sum.To && clash != nil:
				a.Kind, a.Since, a.Reason = AlertConflicts, cmp.Or(clash.Since, item.Since), clash.where()
			case i == sum.To && unmerged != nil:
				a.Kind, a.Since, limit = AlertUnmerged, item.Since, unmergedTime
				a.Reason = unmerged.Place + " is " + Count(unmerged.Ahead, "commit", "commits") + " ahead"
			default:
				continue
			}
			if from := a.Since.Add(limit); from.Before(now) {
				found = append(found, a)
			} else if from.Before(until) {
				until = from
			}
		}
	}
	return found, until
}

// where names the place and its files.
func (c Clash) where() string {
	if len(c.Files) == 0 {
		return c.Place + ": " + Count(c.Count, "file", "files")
	}
	text := c.Place + ": " + strings.Join(c.Files, ", ")
	if more := c.Count - len(c.Files); more > 0 {
		text += " and " + Thousands(more) + " more"
	}
	return CutReason(text)
}

// Overdue are the troubles of a project's stories that come from time alone.
type Overdue struct {
	Base string // of these stories' work
	ids  map[AlertKind][]string
}

// overdueKinds are those troubles, the worst first.
var overdueKinds = []AlertKind{AlertConflicts, AlertUnmerged, AlertStuck}

// newOverdue groups alerts by project.
func newOverdue(alerts []Alert) map[string]Overdue {
	all := map[string]Overdue{}
	for _, a := range alerts {
		if !slices.Contains(overdueKinds, a.Kind) {
			continue
		}
		l := all[a.Project]
		if l.ids == nil {
			l.ids = map[AlertKind][]string{}
		}
		l.Base = cmp.Or(a.Base, l.Base)
		l.ids[a.Kind] = append(l.ids[a.Kind], a.Story.StoryID)
		all[a.Project] = l
	}
	for _, l := range all {
		for _, ids := range l.ids {
			slices.Sort(ids)
		}
	}
	return all
}

// OverdueOf returns those of one project, given its alerts.
func OverdueOf(project string, alerts []Alert) Overdue { return newOverdue(alerts)[project] }

func (l Overdue) Count(kind AlertKind) int { return len(l.ids[kind]) }

func (l Overdue) Has(kind AlertKind, storyID string) bool {
	_, has := slices.BinarySearch(l.ids[kind], storyID)
	return has
}

// Of returns the worst of a story's troubles, "" for none.
func (l Overdue) Of(storyID string) AlertKind {
	i := slices.IndexFunc(overdueKinds, func(kind AlertKind) bool { return l.Has(kind, storyID) })
	if i < 0 {
		return ""
	}
	return overdueKinds[i]
}
