package views

import (
	"strings"

	"switchyard/internal/domain"
)

// Chat is whether the team can be told something in its rooms.
type Chat struct {
	Ready bool     // a bot is set up
	Rooms []string // the bot's, as far as known
}

func NewChat(s domain.BotStatus) Chat { return Chat{Ready: s.State != domain.BotOff, Rooms: s.Rooms} }

// In says where the rooms are: "in #yard and #payments".
func (c Chat) In() string {
	shown, rest := split(c.Rooms, 3)
	names := domain.Map(shown, func(room string) string { return domain.Cut(room, 40) })
	if len(rest) > 0 {
		names = append(names, domain.Count(len(rest), "other room", "other rooms"))
	}
	switch n := len(names); n {
	case 0:
		return "in the chat"
	case 1:
		return "in " + names[0]
	default:
		return "in " + strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// Told says that the rooms were told about that many stories.
func (c Chat) Told(stories int) string {
	return "Told the team " + c.In() + " about " + domain.Count(stories, "story", "stories") + "."
}

// chooses is the label, after the verb, of the button that chooses a whole list.
func chooses(stories int) string {
	if stories == 1 {
		return "it"
	}
	return "all " + thousands(stories)
}
