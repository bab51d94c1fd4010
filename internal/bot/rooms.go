package bot

import (
	"context"
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// rulesKey is the key in State of the rules of rooms that do not get everything.
const rulesKey = "bot.rooms"

// roomRules says what rooms get, by their ids; rules that name no kinds include all kinds of events. A room without
// rules gets everything.
type roomRules map[string]domain.TargetRules

func (r roomRules) wants(room string, e domain.Event) bool {
	rules, limited := r[room]
	return !limited || rules.WantsProject(e.Project) && (len(rules.Events) == 0 || slices.Contains(rules.Events, e.Type))
}

// wantsProject reports whether a room gets questions about a project, "" for none.
func (r roomRules) wantsProject(room, project string) bool {
	rules, limited := r[room]
	return !limited || project == "" || rules.WantsProject(project)
}

// text says what a room gets.
func (r roomRules) text(room string) string {
	rules, limited := r[room]
	if !limited {
		return noRules
	}
	items := slices.Clone(rules.Projects)
	for _, k := range domain.EventKinds {
		if slices.Contains(rules.Events, k.Type) {
			items = append(items, k.Choice)
		}
	}
	return "only this: " + strings.Join(items, ", ")
}

// noRules is what filter calls having no rules.
const noRules = "everything"

// filterCommands has the command that says what a room gets.
type filterCommands struct{ *commands }

// parse reads projects and kinds of events, separated by commas. It returns the first text that is neither.
func (c filterCommands) parse(words []word) (rules domain.TargetRules, unknown string) {
	known := c.gateway.Projects.Registry()
	for item := range strings.SplitSeq(join(words), ",") {
		item = strings.TrimSpace(item)
		if _, isProject := known.Find(item); isProject {
			rules.Projects = append(rules.Projects, item)
			continue
		}
		i := slices.IndexFunc(domain.EventKinds, func(k domain.EventKind) bool {
			return k.Choice != "" && (strings.EqualFold(k.Choice, item) || strings.EqualFold(string(k.Type), item))
		})
		if i < 0 {
			return rules, item
		}
		rules.Events = append(rules.Events, domain.EventKinds[i].Type)
	}
	return rules, ""
}

// isFilter reports whether words are a filter: if not, people may be talking to each other.
func (c filterCommands) isFilter(words []word) bool {
	_, unknown := c.parse(words)
	return unknown == "" || strings.EqualFold(join(words), noRules)
}

// filter changes what a room gets or, without words, says what it gets.
func (c filterCommands) filter(ctx context.Context, room string, words []word) Message {
	all, err := Load(ctx, c.State, rulesKey, roomRules{})
	if err != nil {
		return c.failed(ctx, err)
	}
	rules, unknown := c.parse(words)
	switch {
	case len(words) == 0:
		return plainf("This room gets %s.", all.text(room))
	case strings.EqualFold(join(words), noRules):
		delete(all, room)
	case unknown != "":
		var kinds []string
		for _, k := range domain.EventKinds {
			if k.Choice != "" {
				kinds = append(kinds, k.Choice)
			}
		}
		return plainf("%s is neither a project nor one of: %s.", Code(unknown), strings.Join(kinds, ", "))
	default:
		all[room] = rules
	}
	if err := Save(ctx, c.State, rulesKey, all); err != nil {
		return c.failed(ctx, err)
	}
	return plainf("This room now gets %s.", all.text(room))
}
