package domain

import (
	"encoding/json"
	"time"
)

// Story is what is known of a story: what its project server says about it now, and what the stream has of it.
type Story struct {
	Project      string
	ID, Name     string
	Stage        string     // "" when it is on no board, or none that is known
	Since        time.Time  // when it came into its stage; zero when unknown
	Blocked      string     // the reason, "" when it is not blocked
	BlockedSince time.Time  // zero when unknown
	MergeFailure string     // the reason, "" for none
	File         *StoryFile // nil when the project server does not say

	URL       string // of the project server
	Reachable bool
	Error     string  // why File is nil, in words; "" when the story has left the board
	History   []Event // its newest events, oldest first
	Stays     []Stay  // oldest first
}

// StoryFile is a story's file. It comes from a project server, which may be hostile: only sizes are bounded.
type StoryFile struct {
	Path             string // within the work directory
	Version          string // changes with content and stage
	FrontMatter      json.RawMessage
	FrontMatterError string // "" when it could be read
	Body             string // Markdown
	BodyCut          bool
	Criteria         *Criteria // nil without a task list
	Commits          []Commit  // nil without git
	Writable         bool
}

// Criteria counts the items of a story's task list.
type Criteria struct{ Done, Total int }

// Commit is a commit that mentions a story.
type Commit struct {
	Hash, Author, Subject string
	At                    time.Time
	Files, Added, Removed int
}

// StoryRef is a story that a search found.
type StoryRef struct {
	Project, ID, Name string
	Stage             string // "" when it is on no board
}
