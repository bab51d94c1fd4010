package domain

import (
	"encoding/json"
	"time"
)

// Story is a story as its project server shows it now, together with its past from the stream.
type Story struct {
	Project      string
	ID, Name     string
	Stage        string     // "" if it is on no known board
	Since        time.Time  // when it entered its stage; zero if unknown
	Blocked      string     // the reason, "" if it is not blocked
	BlockedSince time.Time  // zero if unknown
	MergeFailure string     // the reason, "" for none
	File         *StoryFile // nil if the project server did not send it

	URL       string // of the project server
	Reachable bool
	Error     string  // a description of why File is nil; "" if the story has left the board
	History   []Event // its newest events, sorted oldest first
	Visits    []Visit // oldest first
}

// StoryFile is a story's file. It comes from a project server, which may be hostile; only its sizes have been checked.
type StoryFile struct {
	Path             string // within the work directory
	Version          string // changes with content and stage
	FrontMatter      json.RawMessage
	FrontMatterError string // "" for well-formed front matter
	Body             string // Markdown
	BodyCut          bool
	Criteria         *Criteria // nil without a task list
	Commits          []Commit  // nil without git
	Writable         bool
}

type Criteria struct{ Done, Total int }

type Commit struct {
	Hash, Author, Subject string
	At                    time.Time
	Files, Added, Removed int
}

type StoryRef struct {
	Project, ID, Name string
	Stage             string // "" when it is on no board
}
