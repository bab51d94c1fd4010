package domain

import (
	"slices"
	"time"
)

// FlowQuery selects the work that a flow report covers.
type FlowQuery struct {
	Projects []string // none for all; unknown ones are NotFound
	Days     int      // the window: that many calendar days of Zone, ending today
	Ahead    int      // how many days ahead the forecast of the number looks
	Items    int      // how many items the forecast of the date is for; 0 for the open stories
	All      bool     // list all finished stories, not only MaxFlowStories, without their names
	Zone     *time.Location
}

// The limits of a FlowQuery and its defaults.
const (
	MinFlowDays, MaxFlowDays, FlowDays    = 7, 180, 90
	MinFlowAhead, MaxFlowAhead, FlowAhead = 1, 180, 14
	MinFlowItems, MaxFlowItems            = 1, 1000
)

// FlowReport is how long work took and when it may be finished.
type FlowReport struct {
	Stories     []FlowStory // finished in the window, the newest first, at most MaxFlowStories unless all are asked for
	More        int         // the number of others
	Percentiles *[4]int     // of their days, in the order of flow.Levels; nil if there are too few
	Days        []FlowDay   // of the window, oldest first
	Ageing      []FlowAge   // what is in work, oldest first
	Ahead       int
	Items       int
	HowMany     *[4]int // finished at least within Ahead days; nil without a forecast
	When        *[4]int // days until Items are finished, 0 for after more than a year; nil without a forecast
	Graded      []FlowGrade
	// Sample is how many days the forecast is made from, and Finished how many stories were finished on them.
	Sample, Finished int
	Since            time.Time // the first known move of the projects, zero for none
	Work             []string  // the names of the stages of work, in the order of the boards
	Titles           []string  // their titles, for people
}

// SinceFirstMove returns the report with its days from the first known move on: none if there is no move.
func (r *FlowReport) SinceFirstMove() *FlowReport {
	known, first := *r, r.Since.Format(time.DateOnly)
	known.Days = slices.DeleteFunc(slices.Clone(r.Days), func(d FlowDay) bool { return r.Since.IsZero() || d.Day < first })
	return &known
}

// FlowGrade is what a forecast of flow.GradedDays promised at 85 %, and how many stories were then finished.
type FlowGrade struct {
	Day            string // the last day that it was made from, 2026-11-23
	Promised, Came int
}

// CameTrue returns how many of the graded forecasts came true.
func (r *FlowReport) CameTrue() (n int) {
	for _, g := range r.Graded {
		if g.Came >= g.Promised {
			n++
		}
	}
	return n
}

// MaxFlowStories is how many finished stories a report lists.
const MaxFlowStories = 5000

type FlowStory struct {
	NamedStory
	Project, StoryID  string
	Started, Finished time.Time
	Days              int
}

// NamedStory is what the store has of a story besides its id.
type NamedStory struct {
	Number int64 // 0 for none
	Name   string
}

type FlowDay struct {
	Day      string // 2026-11-23
	Finished int
	// Arrived is how many stories came into work on it, each counted once. The first day includes those that came
	// before and were finished in the window or are in work.
	Arrived int
	Stages  map[string]int // stories in each stage at its end, today now
	Work    map[string]int // likewise, where the stage is one of work on its board
	// Reached is how many of the stories counted by Arrived had come into each stage of work or a later one by its end,
	// in the order of the report's Work. So it never falls from day to day, nor rises from stage to stage.
	Reached []int
}

type FlowAge struct {
	Number  int64 // the story's in the store, 0 for none
	Project string
	Stage   *Stage
	Item    *Item
	Start   time.Time // zero if unknown
	Days    int       // from its start to today
	Over    int       // the highest percentile that it exceeds, 0 for none
}
