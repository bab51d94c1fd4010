package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
	"switchyard/internal/wire"
)

// FeedRequest says which records a project server is asked for.
type FeedRequest struct {
	Since int64 // records with a greater timestamp_ms
	// Wait asks the server to hold the answer for that long while there is no such record; a server that does not support
	// it answers at once. Pipeline, unless "", asks it to answer also when its Pipeline-Version is a different one.
	Wait     time.Duration
	Pipeline string
}

const feedPath = "/api/events"

// Feed requests a project server's records. It returns BadGateway with a message for people, or ctx's error.
func (c *Client) Feed(ctx context.Context, p domain.Project, r FeedRequest) (feed FeedAnswer, err error) {
	query := "since=" + strconv.FormatInt(r.Since, 10)
	if r.Wait > 0 {
		query += "&wait=" + r.Wait.String()
		if r.Pipeline != "" {
			query += "&pipeline=" + url.QueryEscape(r.Pipeline)
		}
	}
	err = c.do(ctx, p, call{path: feedPath, query: query, wait: r.Wait}, func(a answer) (err error) {
		feed, err = decodeFeed(a.header, a.body, r.Since)
		return err
	})
	c.observe(ctx, p, "feed", err)
	return feed, err
}

// Pipeline requests a project server's pipeline. known is its last answer or nil, and is itself returned if nothing has
// changed since. A server with a feed but no pipeline has events only. It returns BadGateway with a message for people,
// or ctx's error.
func (c *Client) Pipeline(
	ctx context.Context, p domain.Project, known *domain.PipelineAnswer,
) (result *domain.PipelineAnswer, err error) {
	// Our own project servers leave out items that would be cut anyway: a board of 60,000 stories would be too large.
	ask := call{path: "/api/pipeline", query: "items=" + strconv.Itoa(maxItems)}
	if known != nil {
		ask.etag = known.ETag
	}
	err = c.do(ctx, p, ask, func(a answer) (err error) {
		if result = known; a.status == http.StatusOK {
			result, err = parsePipeline(a, known)
		}
		return err
	})
	if errors.Is(err, errNotFound) && c.servesFeed(ctx, p) {
		if result, err = known, nil; known == nil || !known.EventsOnly {
			result = &domain.PipelineAnswer{EventsOnly: true, Stages: []domain.Stage{}, Raw: []byte("[]")}
		}
	}
	c.observe(ctx, p, "pipeline", err)
	return result, err
}

// servesFeed reports whether the project server has a feed, without requesting any of its records.
func (c *Client) servesFeed(ctx context.Context, p domain.Project) bool {
	query := "since=" + strconv.FormatInt(math.MaxInt64, 10)
	return c.do(ctx, p, call{path: feedPath, query: query}, func(a answer) error {
		_, err := splitFeed(a.body)
		return err
	}) == nil
}

var errNoHistory = domain.Errorf(domain.BadGateway, "answers with something other than a history")

// maxAuthor is how much of an author's name is kept, in characters.
const maxAuthor = 100

type HistoryPart struct {
	ID       string
	Complete bool
	Next     int64
	Moves    []domain.Move // at most as many as were requested
}

// History requests the moves of a project's history after a position. It returns NotFound if the server has no history,
// BadGateway with a message for people for every other failure, or ctx's error.
func (c *Client) History(
	ctx context.Context, p domain.Project, after int64, limit int,
) (part HistoryPart, err error) {
	query := "after=" + strconv.FormatInt(after, 10) + "&limit=" + strconv.Itoa(limit)
	err = c.do(ctx, p, call{path: "/api/history", query: query}, func(a answer) error {
		var h wire.History
		err := cmp.Or(jsonscan.Check(a.body), json.Unmarshal(a.body, &h))
		if err != nil || h.ID == "" || len(h.ID) > maxVersion ||
			h.Next < after || len(h.Moves) > limit {
			return domain.WrapError(domain.BadGateway, err, errNoHistory.Message)
		}
		part = HistoryPart{ID: h.ID, Complete: h.Complete, Next: h.Next, Moves: make([]domain.Move, len(h.Moves))}
		for i, m := range h.Moves {
			part.Moves[i] = domain.Move{
				StoryID: m.StoryID, From: wire.Text(m.FromStage), To: m.ToStage, At: time.UnixMilli(m.AtMS),
				Author: domain.Cut(m.Author, maxAuthor),
			}
		}
		return nil
	})
	return part, c.ended(ctx, p, "history", err, "the project server has no history")
}

const (
	storiesPath = "/api/stories"
	// maxStoryID is the longest id that a server is asked for, in bytes.
	maxStoryID = 4000
	// writeTime is how much longer than other calls a write may take: boards of other tools are written under their locks.
	writeTime = 6 * time.Second
	// changesTime and mergeTime are how long git may take to show changes, and to merge with everything that is run.
	changesTime, mergeTime = 10 * time.Second, 46 * time.Minute
)

// Story requests a story. It returns NotFound if the server has none with this id or does not serve stories,
// BadGateway with a message for people for every other failure, or ctx's error.
func (c *Client) Story(ctx context.Context, p domain.Project, id string) (story domain.Story, err error) {
	path, ok := storyPath(id)
	if !ok {
		return story, domain.WrapError(domain.NotFound, errNotFound, "no project server has a story with this id")
	}
	err = c.do(ctx, p, call{path: path}, func(a answer) error {
		story, err = decodeStory(a, id)
		return err
	})
	return story, c.ended(ctx, p, "story", err, "the project server has no such story")
}

// Picture requests a picture that a story's text names, of at most domain.MaxPicture. It waits while many others are
// being passed on, each until its ctx ends. Its errors are those of Story.
func (c *Client) Picture(ctx context.Context, p domain.Project, id, path string) (picture []byte, err error) {
	query := url.Values{"story_id": {id}, "path": {path}}.Encode()
	err = c.do(ctx, p, call{path: "/api/picture", query: query}, func(a answer) error {
		if picture = a.body; len(picture) > domain.MaxPicture {
			return domain.Errorf(domain.BadGateway, "picture is too large: over %d MiB", domain.MaxPicture>>20)
		}
		return hold(ctx, c.pictures)
	})
	return picture, c.ended(ctx, p, "story", err, "the project server has no such picture")
}

// PatchStory sends a change of a story unchanged, and returns the server's status and body unchanged; the body is at
// most 8 MiB. For an id that no server can have the status is 404. It returns BadGateway with a message for people, or
// ctx's error, when there is no answer, or only a redirect or a 401.
func (c *Client) PatchStory(
	ctx context.Context, p domain.Project, id string, change []byte,
) (status int, body []byte, err error) {
	return c.passStory(ctx, p, id, call{method: http.MethodPatch, body: change, limit: c.timeout + writeTime})
}

// Changes requests what a place of a story has beyond the base, at most 8 MiB. Its results are those of PatchStory.
func (c *Client) Changes(
	ctx context.Context, p domain.Project, id string, q domain.ChangesQuery,
) (status int, body []byte, err error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"branch": q.Branch, "worktree": q.Worktree, "path": q.Path, "since": q.Since,
		"head": q.Head,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return c.passStory(ctx, p, id, call{path: "/changes", query: query.Encode(), limit: c.timeout + changesTime})
}

// Merge requests a merge of a story's branch with a wire.Merge, and waits until it is over. Its results are those of
// PatchStory; after 200 the body is a wire.Merged.
func (c *Client) Merge(
	ctx context.Context, p domain.Project, id string, merge []byte,
) (status int, body []byte, err error) {
	return c.passStory(ctx, p, id, call{method: http.MethodPost, path: "/merge", body: merge, limit: mergeTime})
}

// CreateStory sends a new story unchanged. Its results are those of PatchStory.
func (c *Client) CreateStory(ctx context.Context, p domain.Project, story []byte) (status int, body []byte, err error) {
	return c.pass(ctx, p, call{method: http.MethodPost, path: storiesPath, body: story, limit: c.timeout + writeTime})
}

// storyPath returns the path of a story, false for an id that cannot be part of a path.
func storyPath(id string) (string, bool) {
	if id == "" || id == "." || id == ".." || len(id) > maxStoryID { // dots change the path, even if escaped
		return "", false
	}
	return storiesPath + "/" + url.PathEscape(id), true
}

// passStory is pass for a call about a story, whose path is below the story's.
func (c *Client) passStory(
	ctx context.Context, p domain.Project, id string, call call,
) (status int, body []byte, err error) {
	path, ok := storyPath(id)
	if !ok {
		return http.StatusNotFound, []byte("story not found\n"), nil
	}
	call.path = path + call.path
	return c.pass(ctx, p, call)
}

func (c *Client) pass(ctx context.Context, p domain.Project, call call) (status int, body []byte, err error) {
	call.any = true
	name := domain.Truncate(domain.ActorOf(ctx).Who, domain.MaxBy)
	call.header = http.Header{domain.ByHeader: {url.PathEscape(name)}}
	err = c.do(ctx, p, call, func(a answer) error {
		status, body = a.status, a.body
		return nil
	})
	c.observe(ctx, p, "story", err)
	return status, body, err
}

var errNoTexts = domain.Errorf(domain.BadGateway, "answers with something other than texts")

// FindTexts requests the stories whose texts contain all the words, at most limit of them, the best first, and their
// number. Servers without search have none. It returns BadGateway with a message for people, or ctx's error.
func (c *Client) FindTexts(
	ctx context.Context, p domain.Project, words string, limit int,
) (found []domain.TextRef, total int, err error) {
	query := "q=" + url.QueryEscape(words) + "&limit=" + strconv.Itoa(limit)
	err = c.do(ctx, p, call{path: "/api/search", query: query}, func(a answer) error {
		var answer wire.FoundTexts
		if cmp.Or(jsonscan.Check(a.body), json.Unmarshal(a.body, &answer)) != nil || len(answer.Texts) > limit {
			return errNoTexts
		}
		for _, t := range answer.Texts {
			found = append(found, domain.TextRef{
				StoryRef: domain.StoryRef{
					Project: p.Name, ID: t.StoryID, Name: domain.CutText(t.StoryName), Stage: domain.CutText(t.Stage),
				},
				Heading: text(t.Heading), Excerpt: domain.CutText(t.Excerpt), Whole: t.Whole,
			})
		}
		total = max(min(answer.Total, maxItems), len(found)) // totals are added up
		return nil
	})
	if errors.Is(err, errNotFound) {
		return nil, 0, nil
	}
	c.observe(ctx, p, "search", err)
	return found, total, err
}
