package store

import (
	"fmt"
	"regexp"
	"strings"

	"switchyard/internal/domain"
)

// changeSQL are the statements that append events and change visits. Each takes a JSON array of rows, which are arrays.
type changeSQL struct {
	lock           string // makes a transaction the only one that appends, so that ids increase in the order of commits
	held           string // selects those tokens that are the leader's, and keeps them so until the transaction ends
	known          string // selects those digests that are stored
	addTexts       string
	nameStories    string
	addEvents      string
	addDigests     string
	moveCursors    string
	addStories     string // those that nothing has named yet
	newest         string // selects the newest visits of stories
	mergeable      string // selects more of them
	namesOfStories string // selects numbers and names of stories
	counts         string // selects the counts of projects
	saveVisits     string
	saveCounts     string
	dropVisits     string
	pasts          string // selects the pasts of projects
	savePast       string
	saveBeats      string // null is what stays as it is
	saveSessions   string // of coding agents, unless a later state is stored
	dropSessions   string
	heldClaims     string // selects the claims of holders, including ended ones
	freshDigests   string // adds those that are not yet stored, and selects them
	addCalls       string
	addSums        string // adds the same calls to their sums, like the next two in one order: no two wait for each other
	addSpans       string
	addSessions    string
	reprice        string
	ofProjects     string // ends a query of spans for those of the projects in an array
	saveAlerts     string
	dropAlerts     string
}

// sumColumns are the columns of sums of calls; sumsOfCalls is what rows of calls add, before the time of the last one.
const (
	sumColumns  = "usd, input, cache_read, cache_creation, output, calls, unpriced"
	sumsOfCalls = `SUM(CASE WHEN {15}::number < 0 THEN 0 ELSE {15}::number END), SUM({10}::number), SUM({11}::number),
				SUM({12}::number), SUM({13}::number), COUNT(*), SUM(CASE WHEN {15}::number < 0 THEN 1 ELSE 0 END),
				MAX({1}::number)`
)

const lastID = "SELECT last_id FROM stream"

var jsonNumber, jsonColumn = regexp.MustCompile(`{(\d+)}::number`), regexp.MustCompile(`{(\d+)}`)

// newChangeSQL returns the statements for an engine. In their texts {0} is the first column of a row, and {0}::number
// the same as a number.
func newChangeSQL(d Dialect) *changeSQL {
	sql := func(text string, args ...any) string {
		text = strings.ReplaceAll(fmt.Sprintf(text, args...), "{rows}", d.Rows(1))
		text = jsonNumber.ReplaceAllString(text, "CAST(each.value ->> ${1} AS BIGINT)")
		return jsonColumn.ReplaceAllString(text, "each.value ->> ${1}")
	}
	var updates []string
	for _, column := range strings.Split("stage, from_ms, to_ms, next_stage, source, blocked_ms, blocked_since_ms,"+
		" merge_failed_since_ms, event_ms", ", ") {
		updates = append(updates, column+" = excluded."+column)
	}
	added := func(table string) string {
		var sums []string
		for _, column := range strings.Split(sumColumns, ", ") {
			sums = append(sums, fmt.Sprintf("%[1]s = %[2]s.%[1]s + excluded.%[1]s", column, table))
		}
		return strings.Join(sums, ", ") + fmt.Sprintf(
			", last_ms = CASE WHEN excluded.last_ms > %[1]s.last_ms THEN excluded.last_ms ELSE %[1]s.last_ms END", table)
	}
	newest := func(n int) string {
		return sql(`SELECT %s FROM (
				SELECT stories.id AS asked, (SELECT number FROM stage_visits WHERE story = stories.id
					ORDER BY number DESC LIMIT 1 OFFSET %d) AS first
				FROM {rows} JOIN stories ON stories.project = {0} AND stories.story_id = {1}) AS wanted
			JOIN stage_visits ON story = asked AND number >= COALESCE(first, -9007199254740991)
			ORDER BY story, number`, VisitColumns, n-1)
	}
	return &changeSQL{
		lock:  lastID + d.Lock,
		held:  sql("SELECT token FROM lease WHERE token IN (SELECT {0}::number FROM {rows}) FOR KEY SHARE"),
		known: sql("SELECT digest FROM event_digests WHERE digest IN (SELECT {0}::number FROM {rows})"),
		addTexts: sql(`INSERT INTO texts (digest, type, words) SELECT {0}::number, {1}, {2} FROM {rows} WHERE TRUE
			ON CONFLICT (digest) DO NOTHING`),
		nameStories: sql(`INSERT INTO stories (project, story_id, story_name, words) SELECT {0}, {1}, {2}, {3}
			FROM {rows} WHERE TRUE ON CONFLICT (project, story_id) DO UPDATE SET story_name = excluded.story_name,
				words = CASE replace(stories.words, excluded.words, '') WHEN stories.words
					THEN substr(stories.words || excluded.words, 1, %d) ELSE stories.words END
			WHERE stories.story_name <> excluded.story_name`, maxWords),
		addEvents: sql(`INSERT INTO events (id, project, received_at_ms, timestamp_ms, type, story, text, record)
			SELECT {0}::number, {1}, {2}::number, {3}::number, {4},
				COALESCE((SELECT id FROM stories WHERE project = {1} AND story_id = {5}), 0),
				(SELECT id FROM texts WHERE digest = {6}::number), {7} FROM {rows}`),
		addDigests: sql("INSERT INTO event_digests (digest) SELECT {0}::number FROM {rows}"),
		heldClaims: sql(`SELECT holder, project, story_id, since_ms, 0 FROM claims WHERE holder IN (SELECT {0} FROM {rows})
			UNION ALL SELECT holder, project, story_id, since_ms, ended_ms FROM ended_claims
			WHERE holder IN (SELECT {0} FROM {rows})`),
		freshDigests: sql(`INSERT INTO event_digests (digest) SELECT {0}::number FROM {rows} WHERE TRUE
			ON CONFLICT (digest) DO NOTHING RETURNING digest`),
		moveCursors: sql(`INSERT INTO feed_cursors (project, url, since, instance, sequence)
			SELECT {0}, {1}, {2}::number, {3}, {4}::number FROM {rows} WHERE TRUE ON CONFLICT (project, %s) DO UPDATE
			SET since = excluded.since, instance = excluded.instance, sequence = excluded.sequence`, d.CursorURL),
		addStories: sql(`INSERT INTO stories (project, story_id, story_name, words) SELECT {0}, {1}, {2}, {3}
			FROM {rows} WHERE TRUE ON CONFLICT (project, story_id) DO NOTHING`),
		namesOfStories: sql(`SELECT stories.id, project, story_id, story_name
			FROM {rows} JOIN stories ON stories.project = {0} AND stories.story_id = {1}`),
		newest:    newest(domain.NewestVisits),
		mergeable: newest(domain.MergedVisits),
		counts: sql(`SELECT project, open_visits, stages FROM visit_counts
			WHERE project IN (SELECT {0} FROM {rows})`),
		saveVisits: sql(`INSERT INTO stage_visits (project, story, number, stage, from_ms, to_ms, next_stage, source,
				blocked_ms, blocked_since_ms, merge_failed_since_ms, event_ms)
			SELECT {0}, (SELECT id FROM stories WHERE project = {0} AND story_id = {1}), {2}::number, {3}, {4}::number,
				{5}::number, {6}, {7}, {8}::number, {9}::number, {10}::number, {11}::number FROM {rows} WHERE TRUE
			ON CONFLICT (story, number) DO UPDATE SET %s`, strings.Join(updates, ", ")+d.VisitChanged),
		saveCounts: sql(`INSERT INTO visit_counts (project, open_visits, stages) SELECT {0}, {1}::number, {2}
			FROM {rows} WHERE TRUE ON CONFLICT (project)
			DO UPDATE SET open_visits = excluded.open_visits, stages = excluded.stages`),
		dropVisits: sql(`DELETE FROM stage_visits WHERE (story, number) IN (SELECT stories.id, {2}::number
			FROM {rows} JOIN stories ON stories.project = {0} AND stories.story_id = {1})`),
		saveBeats: sql(`UPDATE agents SET state = COALESCE({1}, state), detail = COALESCE({2}, detail),
			state_since_ms = COALESCE({3}::number, state_since_ms), last_seen_ms = {4}::number
			FROM {rows} WHERE agents.id = {0}`),
		saveSessions: sql(`INSERT INTO agent_sessions (asker, id, last_ms, state) SELECT {0}, {1}, {2}::number, {3}
			FROM {rows} WHERE TRUE ON CONFLICT (asker, id) DO UPDATE SET last_ms = excluded.last_ms, state = excluded.state
			WHERE excluded.last_ms > agent_sessions.last_ms`),
		dropSessions: sql(`DELETE FROM agent_sessions WHERE EXISTS (SELECT 1 FROM {rows} WHERE {0} = agent_sessions.asker
			AND {1} = agent_sessions.id AND {2}::number >= agent_sessions.last_ms)`),
		addCalls: sql(`INSERT INTO usage_calls (key, at_ms, project, story_id, holder, by_whom, agent_id, client, session,
				model, input, cache_read, cache_creation, output, stated, cost)
			SELECT {0}, {1}::number, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}::number, {11}::number, {12}::number,
				{13}::number, {14}::number, {15}::number FROM {rows}`),
		addSums: sql(`INSERT INTO usage_sums (project, story_id, model, `+sumColumns+`, last_ms, first_ms)
			SELECT {2}, {3}, {9}, `+sumsOfCalls+`, MIN({1}::number) FROM {rows} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
			ON CONFLICT (project, story_id, model) DO UPDATE SET %s,
				first_ms = CASE WHEN excluded.first_ms < usage_sums.first_ms THEN excluded.first_ms ELSE usage_sums.first_ms END`+
			d.VisitChanged, added("usage_sums")),
		addSpans: sql(`INSERT INTO usage_spans (span, project, story_id, holder, client, session, model, by_whom, agent_id,
				`+sumColumns+`, last_ms)
			SELECT {1}::number / %d, {2}, {3}, {4}, {7}, {8}, {9}, MAX({5}), MAX({6}), `+sumsOfCalls+`
			FROM {rows} GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
			ON CONFLICT (span, project, story_id, holder, client, session, model) DO UPDATE SET %s`,
			spanMilli, added("usage_spans")),
		addSessions: sql(`INSERT INTO usage_sessions (project, story_id, session) SELECT DISTINCT {2}, {3}, {8} FROM {rows}
			WHERE {3} <> '' AND {8} <> '' ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`),
		reprice: sql(`UPDATE usage_calls SET cost = COALESCE((SELECT (input * {1}::number + cache_read * {2}::number +
				cache_creation * {3}::number + output * {4}::number + 500000) / 1000000
			FROM {rows} WHERE {0} = usage_calls.model), -1) WHERE stated < 0`),
		ofProjects: " AND project IN (SELECT each.value ->> 0 FROM " + d.Rows(3) + ")",
		saveAlerts: sql(`INSERT INTO noted_alerts (key, kind, project, since_ms, seq)
			SELECT {0}, {1}, {2}, {3}::number, {4}::number FROM {rows} WHERE TRUE
			ON CONFLICT (key) DO UPDATE SET since_ms = excluded.since_ms, seq = excluded.seq`),
		dropAlerts: sql("DELETE FROM noted_alerts WHERE key IN (SELECT {0} FROM {rows})"),
		pasts: sql(`SELECT project, id, since_ms, live_ms, latest FROM histories
			WHERE project IN (SELECT {0} FROM {rows})`),
		savePast: `INSERT INTO histories (project, id, since_ms, live_ms, latest) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (project)
			DO UPDATE SET id = excluded.id, since_ms = excluded.since_ms, latest = excluded.latest` + d.VisitChanged,
	}
}
