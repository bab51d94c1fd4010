package mcp

import (
	"context"
	"encoding/json"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// How much of a story is shown. The console has the rest.
const (
	maxBody        = 12 << 10 // bytes
	maxFrontMatter = 4 << 10  // bytes
	maxPast        = 20       // events, visits and commits each
)

// storyJSON names its fields as the API does.
type storyJSON struct {
	Project        string          `json:"project"`
	StoryID        string          `json:"story_id"`
	StoryName      string          `json:"story_name"`
	Stage          *string         `json:"stage"`
	SinceMS        *int64          `json:"since_ms"`
	Blocked        *string         `json:"blocked"`
	BlockedSinceMS *int64          `json:"blocked_since_ms"`
	MergeFailure   *string         `json:"merge_failure"`
	Error          *string         `json:"error"` // why the rest is not known
	Version        *string         `json:"version"`
	Writable       bool            `json:"writable"`
	FrontMatter    json.RawMessage `json:"front_matter"`
	Body           *string         `json:"body"`
	BodyCut        bool            `json:"body_cut"`
	Criteria       *wire.Criteria  `json:"criteria"`
	Commits        []commitJSON    `json:"commits"`
	MoreCommits    int             `json:"more_commits"`
	Visits         []wire.Visit    `json:"stays"`
	MoreVisits     int             `json:"more_stays"` // older ones
	History        []domain.Event  `json:"history"`
	MoreHistory    int             `json:"more_history"` // older ones
	Next           int64           `json:"next"`
}

type commitJSON struct {
	Hash    string `json:"hash"`
	Author  string `json:"author"`
	AtMS    int64  `json:"at_ms"`
	Subject string `json:"subject"`
}

// story returns a story, or an error that says how to find its id.
func (s *Server) story(ctx context.Context, key storyKey) (domain.Story, error) {
	if _, err := s.findProject(key.Project); err != nil {
		return domain.Story{}, err
	}
	story, err := s.service.Stories.Get(ctx, key.Project, key.StoryID)
	return story, hint(err, domain.NotFound, "list_stories shows the ids, and search finds stories by their names")
}

func (s *Server) getStory(ctx context.Context, key storyKey) (storyJSON, error) {
	next := s.service.Events.LastID()
	story, err := s.story(ctx, key)
	if err != nil {
		return storyJSON{}, err
	}
	encoded := encodeStory(story)
	encoded.Next = next
	return encoded, nil
}

func encodeStory(s domain.Story) storyJSON {
	encoded := storyJSON{
		Project: s.Project, StoryID: s.ID, StoryName: short(s.Name), Stage: web.OrNull(s.Stage),
		SinceMS: wire.TimeOrNull(s.Since),
		Blocked: web.OrNull(s.Blocked), BlockedSinceMS: wire.TimeOrNull(s.BlockedSince),
		MergeFailure: web.OrNull(s.MergeFailure),
		Error:        web.OrNull(s.Error), FrontMatter: json.RawMessage("{}"),
		Commits: []commitJSON{}, Visits: []wire.Visit{}, History: []domain.Event{},
	}
	var past list[domain.Event]
	past.most = maxPast
	for i := len(s.History) - 1; i >= 0; i-- { // the newest are shown, oldest first
		past.add(s.History[i])
	}
	for i := len(past.items) - 1; i >= 0; i-- {
		encoded.History = append(encoded.History, past.items[i])
	}
	encoded.MoreHistory = past.more
	encoded.MoreVisits = max(0, len(s.Visits)-maxPast)
	for _, visit := range s.Visits[encoded.MoreVisits:] {
		visit.Stage = short(visit.Stage)
		encoded.Visits = append(encoded.Visits, wire.NewVisit(visit))
	}
	if s.File != nil {
		encoded.addFile(s.File)
	}
	return encoded
}

func (j *storyJSON) addFile(f *domain.StoryFile) {
	body := shorten(f.Body, maxBody)
	j.Version, j.Writable, j.Body, j.BodyCut = &f.Version, f.Writable, &body, f.BodyCut || body != f.Body
	if len(f.FrontMatter) > 0 && len(f.FrontMatter) <= maxFrontMatter {
		j.FrontMatter = f.FrontMatter
	}
	if f.Criteria != nil {
		j.Criteria = &wire.Criteria{Done: f.Criteria.Done, Total: f.Criteria.Total}
	}
	for _, c := range f.Commits[:min(len(f.Commits), maxPast)] {
		j.Commits = append(j.Commits, commitJSON{c.Hash, short(c.Author), c.At.UnixMilli(), short(c.Subject)})
	}
	j.MoreCommits = max(0, len(f.Commits)-maxPast)
}
