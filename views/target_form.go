package views

import (
	"slices"
	"strings"

	"switchyard/internal/domain"
)

// TargetForm is the form that adds or changes a target, as it was sent, with its error. The address is never sent back.
type TargetForm struct {
	ID    string // "" to add one
	Kind  string // the one that is described
	Shown string // the address without its secrets
	Name  string
	URL   string // if refused, so that it can be corrected
	Rules domain.TargetRules
	Error FieldError
	// Tested is the result of a test before adding the target, without a Text if there was none.
	Tested Notice
}

// targetKind is a kind of target to choose from.
type targetKind struct{ id, name, about, field, example string }

var targetKinds = []targetKind{
	{"ntfy", "ntfy", "a topic", "Address of the topic", "ntfy://ntfy.sh/my-topic"},
	{"gotify", "Gotify", "a server, a token", "Address with its token", "gotify://gotify.example.net/token"},
	{"discord", "Discord", "a webhook’s address", "Address of the webhook", "https://discord.com/api/webhooks/…"},
	{"slack", "Slack", "a webhook’s address", "Address of the webhook", "https://hooks.slack.com/services/…"},
	{"mattermost", "Mattermost", "a webhook’s token", "Address with its token", "mattermost://chat.example.net/token"},
	{"telegram", "Telegram", "a bot, a chat", "Bot and chats", "telegram://token@telegram?chats=@channel"},
	{"pushover", "Pushover", "two keys", "Keys", "pushover://shoutrrr:token@user/"},
	{"mail", "Mail", "an address", "Address", "mailto:team@example.net"},
	{"webhook", "Webhook", "an address, signed", "Address", "https://hooks.example.net/switchyard"},
}

// NewTargetForm is the form for another target of a kind, with what is wanted most there: a phone is for what waits for
// somebody or does not work, a room for what the team follows, mail for once a day, and a program for everything.
func NewTargetForm(kind, zone string) *TargetForm {
	f := &TargetForm{Kind: kind, Rules: domain.TargetRules{Digest: domain.NoDigest, DigestAt: "08:00", TimeZone: zone}}
	f.Rules.Alerts = slices.DeleteFunc(domain.AlertKinds(), func(k domain.AlertKind) bool {
		return k == domain.AlertStuck || k == domain.AlertAgentLost || k == domain.AlertClockAhead
	})
	room := []domain.EventType{domain.StageTransition, domain.StoryBlocked, domain.MergeFailure}
	switch kind {
	case "webhook":
		f.Rules.Events, f.Rules.Alerts = f.eventTypes(), domain.AlertKinds()
	case "mail":
		f.Rules.Events, f.Rules.Digest = room, domain.DailyDigest
	case "discord", "slack", "mattermost":
		f.Rules.Events, f.Rules.Digest = room, domain.HourlyDigest
	default:
		f.Rules.Quiet = new(f.quiet())
	}
	return f
}

func (f TargetForm) kind() targetKind {
	i := slices.IndexFunc(targetKinds, func(k targetKind) bool { return k.id == f.Kind })
	if i < 0 {
		return targetKind{field: "Address", example: "https://…, mailto:…, ntfy://…"}
	}
	return targetKinds[i]
}

// kindOf returns the kind of an address.
func kindOf(address string) string {
	switch scheme, _, _ := strings.Cut(address, ":"); scheme {
	case "mailto":
		return "mail"
	case "http", "https":
		return "webhook"
	default:
		return scheme
	}
}

// IsTargetKind reports whether targets of this kind can be chosen.
func IsTargetKind(id string) bool {
	return slices.ContainsFunc(targetKinds, func(k targetKind) bool { return k.id == id })
}

// maxProjectChoices is how many projects the form offers at most.
const maxProjectChoices = 100

// projectChoices are the projects that the form offers: first the chosen ones, then others.
func (f TargetForm) projectChoices(projects []string) []string {
	list := slices.Clone(f.Rules.Projects)
	for _, name := range projects {
		if len(list) < maxProjectChoices && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// eventTypes are the types that the form offers, and those already chosen.
func (f TargetForm) eventTypes() []domain.EventType {
	list := []domain.EventType{domain.Finished}
	for _, kind := range domain.EventKinds {
		if kind.Choice != "" {
			list = append(list, kind.Type)
		}
	}
	for _, kind := range f.Rules.Events {
		if !slices.Contains(list, kind) {
			list = append(list, kind)
		}
	}
	return list
}

func (f TargetForm) quiet() domain.Quiet {
	if f.Rules.Quiet == nil {
		return domain.Quiet{From: "22:00", To: "07:00"}
	}
	return *f.Rules.Quiet
}

var weekDays = []struct{ id, name string }{
	{"mon", "Mo"}, {"tue", "Tu"}, {"wed", "We"}, {"thu", "Th"}, {"fri", "Fr"}, {"sat", "Sa"}, {"sun", "Su"},
}
