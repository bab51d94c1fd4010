package domain

// Telling is what somebody tells the team in its chat rooms about stories.
type Telling struct {
	By      string      `json:"by"`
	Word    string      `json:"word"` // of their own, "" for none
	Stories []ToldStory `json:"stories"`
	More    int         `json:"more"` // how many others there are
}

type ToldStory struct {
	Project string
	Stage   string // its title
	Item
}

const (
	// MaxWord is the longest word of one's own in a Telling, in characters.
	MaxWord = 500
	// MaxTold is the most stories that a Telling names.
	MaxTold = 20
)
