package domain

// Announcement is what somebody tells the team in its chat rooms about stories.
type Announcement struct {
	By      string           `json:"by"`
	Word    string           `json:"word"` // the sender's, "" for none
	Stories []AnnouncedStory `json:"stories"`
	More    int              `json:"more"` // how many others there are
}

type AnnouncedStory struct {
	Project string
	Stage   string // its title
	Item
}

const (
	// MaxWord is the longest message of the sender's own in an Announcement, in characters.
	MaxWord = 500
	// MaxAnnounced is the most stories that an Announcement names.
	MaxAnnounced = 20
)
