package sample

import (
	"fmt"
	"strings"
	"time"
)

var stages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

// Indexes of stages.
const (
	backlog = iota
	current
	qa
	merge
	done
	archived
)

// stays is how long stories are usually in a stage, and how long in the done stage.
var stays = [...]time.Duration{30 * hour, 26 * hour, 14 * hour, 2 * hour, 4 * day}

const (
	hour = time.Hour
	day  = 24 * hour
	// history is how far the past of a new sample reaches.
	history = 15 * day
)

type project struct {
	name    string
	stories []story
}

// story is a story of a new sample. Its number, and the time when it began, go by its place in the project's list.
type story struct {
	name string
	text string
	// stage and age are where a story is and since when; without an age that is left to chance.
	stage int
	age   time.Duration
	front string // further front matter
}

const (
	// asking is the name of the story that waits for the answer to a question, first of the one that the reader is invited
	// to move.
	asking = "Pay by card"
	first  = "Search with typos"
	// failing is the story whose merge has failed, stuck the one that is in its stage for too long.
	failing, stuck = "Price with postage", "Check addresses"
	conflict       = "conflict in billing/basket.go"

	prompt = "Which provider takes the card payments?"
)

// projects are those of the sample. The first two have an agent each.
var projects = []project{
	{"sample-shop", append(named(
		"Take the first order", "Start page within a second", "No cookies, no banner", "Stock by shop", "Round the totals",
		"Remember the language", "Faster product pages", "Undo a deleted basket", "Vouchers by mail", "Delivery on Saturdays",
		"Return labels", "Reviews of products",
	),
		story{
			name: "Photos in the right size", text: "Phones get small photos. Saves two thirds of the traffic.",
			stage: merge, age: 14 * time.Minute,
		},
		story{
			name: "Log in by link", text: "The link works once and for a quarter of an hour.\n\n" +
				"- [x] The mail has the link\n- [x] It works once\n- [ ] It ends after a quarter of an hour\n",
			stage: qa, age: 70 * time.Minute,
		},
		story{
			name: asking, text: "Cards besides bank transfer.\n\n- [x] The form\n- [ ] The provider\n- [ ] Refunds\n",
			stage: current, age: 20 * hour, front: "blocked: true\nblocked_reason: " + prompt + "\n",
		},
		story{
			name: first, text: `"Choclate" should find chocolate. Up to two wrong letters, at most 50 ms.`,
			stage: current, age: 3 * hour,
		},
		story{name: "Mail at dispatch", text: "One mail with the parcel's number.", stage: current, age: 2 * hour},
		story{name: "Orders as CSV", text: "Last month's orders, one line each.", stage: backlog, age: 2 * day},
		story{name: "Dark theme", text: "Follow the system's setting.", stage: backlog, age: 3 * day},
		story{name: "Gift cards", text: "A card has an amount and a code.", stage: backlog, age: 5 * day},
	)},
	{"sample-app", append(named(
		"Sign in once", "Offline catalogue", "Smaller download", "Scan a barcode", "Push when shipped", "Larger type",
		"Share a wish list", "Faster start", "Crash on rotation", "Keep the basket", "Show the nearest shop",
		"Haptic feedback", "Undo by shaking", "Landscape photos",
	),
		story{
			name: stuck, text: "Suggest the street once the post code is there. Never refuse an address.",
			stage: qa, age: 5 * day,
		},
		story{name: "Widget for orders", stage: current, age: 5 * hour},
		story{name: "Sync in the background", stage: current, age: 9 * hour},
		story{name: "Pay at the till", stage: backlog, age: day},
		story{name: "Watch face", stage: backlog, age: 6 * day},
	)},
	{"sample-billing", append(named(
		"Number the invoices", "Reminders after 14 days", "Value added tax abroad", "Export for the accountant",
		"Credit notes", "Retry failed debits", "Audit of changes", "Invoices as PDF", "Rounding of discounts",
		"Bank holidays", "Currency of the customer", "Split payments",
	),
		story{
			name: failing, text: "Postage depends on weight and country; show it before the order, not after.",
			stage: merge, age: 50 * time.Minute, front: "merge_failure: " + conflict + "\n",
		},
		story{name: "Yearly statement", stage: current, age: 7 * hour},
		story{name: "Archive for ten years", stage: backlog, age: 4 * day},
	)},
	{"sample-docs", named(
		"How to return", "Sizes and fits", "Opening hours", "Imprint", "Delivery abroad", "Search the help",
		"Pictures of parcels", "Translate to French", "Plain words", "Glossary", "Contact by phone", "Print styles",
	)},
}

// named returns stories whose past is left to chance.
func named(names ...string) (stories []story) {
	for _, name := range names {
		stories = append(stories, story{name: name})
	}
	return stories
}

// id is the id of the story that is the project's number n, beginning with 1.
func (p project) id(n int) string {
	name := p.stories[(n-1)%len(p.stories)].name
	return fmt.Sprintf("%d_story_%s", n, strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(name, ",", "")), " ", "_"))
}

func (p project) idOf(name string) string {
	for i, s := range p.stories {
		if s.name == name {
			return p.id(i + 1)
		}
	}
	return ""
}

func (s story) file() []byte {
	return []byte("---\nname: " + s.name + "\n" + s.front + "---\n" + s.text + "\n")
}

// past returns when the story came to each stage, up to the one where it is at born. began is when it was written and
// chance returns numbers whose mean is 1.
func (s story) past(began, born time.Time, chance func() float64) []time.Time {
	stay := func(stage int) time.Duration { return time.Duration((0.2 + 0.8*chance()) * float64(stays[stage])) }
	if s.age > 0 {
		times := make([]time.Time, s.stage+1)
		times[s.stage] = born.Add(-s.age)
		for stage := s.stage - 1; stage >= 0; stage-- {
			times[stage] = times[stage+1].Add(-stay(stage))
		}
		return times
	}
	times := []time.Time{began}
	for stage := backlog; stage < archived; stage++ {
		next := times[stage].Add(stay(stage))
		if next.After(born) {
			break
		}
		times = append(times, next)
	}
	return times
}
