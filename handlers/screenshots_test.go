package handlers_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
)

var screenshots = flag.String("screenshots", "", "write pictures of the console into this directory")

// TestScreenshots makes the pictures of the documentation, from the console as it is.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		return // pictures are made on demand: make screenshots
	}
	s := exampleSite(t)
	tab := browsertest.Open(t)
	for _, picture := range []struct {
		name, path, scheme string
		width, height      int64
	}{
		{"overview", "/", "light", 1280, 800},
		{"overview-dark", "/", "dark", 1280, 800},
		{"overview-small", "/", "light", 360, 800},
		{"projects", "/projects", "light", 1280, 600},
		{"project", "/projects/storefront", "light", 1280, 800},
		{"events", "/events", "light", 1280, 600},
	} {
		tab.Size(picture.width, picture.height)
		tab.Media("prefers-color-scheme", picture.scheme)
		tab.Goto(s.url + picture.path)
		tab.Screenshot(filepath.Join(*screenshots, picture.name+".png"))
	}
}

// exampleSite is a gateway over four projects with a fortnight of work behind them.
func exampleSite(t *testing.T) *consoleSite {
	s := newConsoleSite(t)
	s.add("billing", board("1_backlog: 61_story_refund_in_parts, 64_story_vat_for_switzerland", "2_current: 58_story_invoice_numbers_without_gaps",
		"3_qa:", "4_merge: 55_story_reminders_by_letter?conflict in go.mod", "5_done: 54_story_receipts", "6_archived: 1_story_a, 2_story_b, 3_story_c"))
	s.add("mobile app", board("1_backlog: 20_story_widgets", "2_current:", "3_qa:", "4_merge:", "5_done: 18_story_dark_theme, 19_story_haptics", "6_archived: 4_story_x"))
	s.add("search", nil)
	s.add("storefront", board("1_backlog: 40_story_gift_cards, 41_story_wish_lists, 43_story_compare_products, 44_story_size_guide",
		"2_current: 36_story_log_in_with_a_passkey, 39_story_search_as_you_type", "3_qa: 34_story_pay_by_invoice!waiting for the bank's API key, 35_story_faster_images",
		"4_merge: 33_story_address_book", "5_done: 30_story_cookie_banner, 31_story_returns, 32_story_stock_alerts", "6_archived: 7_story_a, 8_story_b"))
	if err := s.Switch(t.Context(), "storefront"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	stages := []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done"}
	stories := []string{"cookie_banner", "returns", "stock_alerts", "receipts", "coupons", "ratings", "newsletter", "pick_up_in_store", "postcodes"}
	for i, story := range stories {
		for j := range stages[1:] {
			age := time.Duration(len(stories)-i)*29*time.Hour - time.Duration([]int{0, 9, 22, 26}[j]+j*(i%3))*time.Hour
			s.example(story, 22+i, stages[j], stages[j+1], now.Add(-age))
		}
	}
	s.example("address_book", 33, "3_qa", "4_merge", now.Add(-41*time.Minute))
	s.record("billing", fmt.Sprintf(`{"type":"merge_failure","story_id":"55_story_reminders_by_letter","story_name":"Reminders by letter","reason":"conflict in go.mod","timestamp_ms":%d}`, now.Add(-14*time.Minute).UnixMilli()))
	s.record("storefront", fmt.Sprintf(`{"type":"story_blocked","story_id":"34_story_pay_by_invoice","story_name":"Pay by invoice","reason":"waiting for the bank's API key","timestamp_ms":%d}`, now.Add(-6*time.Minute).UnixMilli()))
	s.example("log_in_with_a_passkey", 36, "1_backlog", "2_current", now.Add(-50*time.Second))
	return s
}

// example records a move of a story of the project storefront.
func (s *consoleSite) example(story string, number int, from, to string, at time.Time) {
	s.Helper()
	s.record("storefront", fmt.Sprintf(`{"type":"stage_transition","story_id":"%d_story_%s","story_name":%q,"from_stage":%q,"to_stage":%q,"timestamp_ms":%d}`,
		number, story, strings.ToUpper(story[:1])+strings.ReplaceAll(story[1:], "_", " "), from, to, at.UnixMilli()))
}
