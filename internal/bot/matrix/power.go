package matrix

import (
	"encoding/json"
	"strconv"
)

// mayPost reports whether a room's power levels allow a user to post messages.
func mayPost(content json.RawMessage, user string) bool {
	var levels struct {
		Users         map[string]any `json:"users"`
		UsersDefault  any            `json:"users_default"`
		Events        map[string]any `json:"events"`
		EventsDefault any            `json:"events_default"`
	}
	if json.Unmarshal(content, &levels) != nil {
		return true // if not, the homeserver will refuse the message
	}
	has, ok := levels.Users[user]
	if !ok {
		has = levels.UsersDefault
	}
	needs, ok := levels.Events["m.room.message"]
	if !ok {
		needs = levels.EventsDefault
	}
	return powerLevel(has) >= powerLevel(needs)
}

// powerLevel reads a level, which old rooms also write as a string; 0 if there is none.
func powerLevel(level any) float64 {
	switch level := level.(type) {
	case float64:
		return level
	case string:
		number, _ := strconv.ParseFloat(level, 64)
		return number
	}
	return 0
}
