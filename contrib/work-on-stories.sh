#!/bin/sh
# A whole agent in curl and jq, to be run by switchyard agent:
#
#   switchyard agent --gateway URL --label builder-1 -- contrib/work-on-stories.sh [CMD ARG…]
#
# It claims one story after the other. For each it runs CMD with the story's text on stdin and its id in
# SWITCHYARD_STORY_ID; SWITCHYARD_NOTE says why a review sent the story back. What CMD's exit status means:
#
#   0      the story is done: it moves to the done stage. What ended well never runs again: if the move is refused the story
#          is blocked with the refusal's words, or stays claimed where that is refused, too
#   3      CMD's last line is a question: CMD runs again with the answer in SWITCHYARD_ANSWER
#   75     not now (EX_TEMPFAIL): the story goes back to where it came from, for anybody, and the agent waits
#   other  CMD's last line says what is wrong: the story is blocked with that, until somebody unblocks it
#
# After three failures in a row of less than ten seconds each, and after 75, it waits for a minute, then for twice as long each
# time, up to half an hour: a tool that cannot run would block every story of the board. The agent's detail says so.
#
# Without CMD each story just moves through its stages.
#
# With switchyard agent --worktrees DIR each story is worked on in a work tree of its own, DIR/ID with the branch story/ID: CMD
# runs there and commits what it makes. A story that is done stays where it is, for a review, and anybody may claim it once it
# is sent back. Work trees that are merged and clean are removed. That needs the project's repository on this machine.
set -u
: "${SWITCHYARD_GATEWAY_URL:?run this as the command of switchyard agent}" "${SWITCHYARD_API_TOKEN:?}"
: "${SWITCHYARD_PROJECT:?}" "${SWITCHYARD_AGENT_ID:?}"
[ $# -eq 0 ] || command -v "$1" >/dev/null || { echo "There is no command $1." >&2 && exit 1; } # or each story would be blocked
case ${1-} in
/*) ;;
*/*) # it runs elsewhere
	command=$(cd "${1%/*}" && pwd)/${1##*/}
	shift
	set -- "$command" "$@"
	;;
esac
worktrees=${SWITCHYARD_WORKTREES-} tree=
newline='
'
failures=0 pause=60
left= # the stories, a line each, that stay claimed though nothing can be done for them
output=$(mktemp) || exit 1
ended=${XDG_STATE_HOME:-${HOME:-/tmp}/.local/state}/switchyard/ended-$SWITCHYARD_AGENT_ID # the claims whose work ended well
mkdir -p "${ended%/*}" && touch "$ended" || exit 1
tail -n 1000 "$ended" >"$output" && cat "$output" >"$ended"
trap 'rm -f "$output"' EXIT
trap 'exit 143' TERM INT

# api METHOD PATH [BODY] sets $status and $answer. It tries again while the gateway cannot answer.
api() {
	while :; do
		answer=$(printf 'header = "Authorization: Bearer %s"\n' "$SWITCHYARD_API_TOKEN" |
			curl --silent --config - --max-time 90 --request "$1" ${3:+--header 'Content-Type: application/json'} \
				${3:+--data-raw "$3"} --write-out '\n%{http_code}' "$SWITCHYARD_GATEWAY_URL/api/gateway$2")
		status=${answer##*"$newline"} answer=${answer%"$newline"*}
		case $status in
		000 | 429 | 502 | 503 | 504) sleep 1 ;;
		401) echo 'The token has ended.' >&2 && exit 1 ;; # the agent gets another one
		*) return ;;
		esac
	done
}

# field FILTER selects from the last answer.
field() { printf '%s' "$answer" | jq --raw-output "$1"; }

uri() { jq --raw-output --null-input --arg text "$1" '$text | @uri'; }

# change FIELD VALUE changes the story, whatever has been changed meanwhile. It fails if that is refused.
change() {
	tries=6
	while [ $tries -gt 0 ]; do
		api GET "$stories/$story"
		api PATCH "$stories/$story" \
			"$(jq --null-input --arg version "$(field .version)" --arg value "$2" --arg tree "$tree" \
				"{version: \$version, $1: \$value} + if \$tree == \"\" then {} else {worktree: \$tree} end")"
		case $status$answer in
		200* | *'already there'*) return 0 ;;
		409*' is claimed by '*) break ;; # somebody has taken it over
		409*'changed meanwhile'*) sleep 1 ;; # the version that it has then may do
		409*) tries=$((tries - 1)) ;;
		*) break ;;
		esac
	done
	echo "$id stays as it is: $answer" >&2
	return 1
}

# block blocks the story with a reason. If that is refused the story stays claimed as it is.
block() { change blocked "$1" || left=$left$id$newline; }

# finish moves the story to the done stage, or says why it cannot. In a work tree it is left for the review.
finish() {
	if [ -n "$worktrees" ]; then
		api DELETE "$stories/$story/claim"
		return
	fi
	change stage "$last" || block "it is done, but cannot be moved to ${last:-a done stage}: $answer"
}

# rest waits, each time in a row twice as long, and says why in what the agent shows.
rest() {
	echo "waiting for $pause s: $1"
	sleep "$pause"
	pause=$((pause * 2 > 1800 ? 1800 : pause * 2))
}

# give_back moves the story to where it was claimed from, the stage before, and releases it.
give_back() {
	api GET "$stories/$story"
	from=$(printf '%s' "$names" | jq --raw-output --arg stage "$(field .stage)" '(index($stage) // 0) as $i | if $i > 0 then .[$i - 1] else "" end')
	[ -z "$from" ] || change stage "$from"
	api DELETE "$stories/$story/claim"
}

# board reads the names of the stages into $names, a JSON list, and that of the done stage into $last.
board() {
	api GET /pipeline
	names=$(printf '%s' "$answer" | jq --compact-output --arg project "$SWITCHYARD_PROJECT" \
		'[.projects[$project].stages // [] | .[].name]')
	last=$(printf '%s' "$names" | jq --raw-output \
		'first(.[] | select(ascii_downcase | test("^(\\d+_)?(done|completed|closed|shipped|live|released|archived)$"))) // .[-1] // ""')
}

# mine prints the id of a story that this agent has claimed already and can go on with: after a restart, and once it is
# no longer blocked.
mine() {
	printf '%s' "$answer" | jq --raw-output --arg project "$SWITCHYARD_PROJECT" --arg agent "$SWITCHYARD_AGENT_ID" \
		--arg left "$left" 'first(.projects[$project].stages // [] | .[].items[] | select(.claim.agent_id == $agent
		and .blocked == null and (.story_id | IN($left | split("\n")[]) | not)) | .story_id) // ""'
}

# walk moves the story to the done stage through all stages between.
walk() {
	api GET "$stories/$story"
	for next in $(printf '%s' "$names" | jq --raw-output --arg stage "$(field .stage)" --arg last "$last" \
		'.[(index($stage) // -1) + 1:(index($last) // -1) + 1][] | @uri'); do
		change stage "$(printf '%s' "$names" | jq --raw-output --arg next "$next" 'first(.[] | select(@uri == $next))')" ||
			return
	done
}

# settle makes the work tree of the story, or takes the one that is there, and begins the work on the story in it.
settle() {
	answer=$(curl --silent --max-time 60 "$SWITCHYARD_PROJECT_URL/api/pipeline")
	repository=$(field '.worktrees[0] // ""') base=$(field '.base.commit // ""')
	if [ -z "$base" ] || ! [ -d "$repository" ]; then
		said="there is no repository of $SWITCHYARD_PROJECT on this machine"
		return 1
	fi
	name=$(printf '%s' "$id" | LC_ALL=C tr -- '\000-\040~^:?*[\\/@{\177' '-')
	tree=$worktrees/$name
	if ! [ -e "$tree/.git" ]; then
		said=$(git -C "$repository" worktree add --quiet -b "story/$name" "$tree" "$base" 2>&1 ||
			git -C "$repository" worktree add --quiet "$tree" "story/$name" 2>&1) || return
	fi
	if [ "$1" = new ]; then
		api GET "$stories/$story"
		next=$(printf '%s' "$names" | jq --raw-output --arg stage "$(field .stage)" '.[(index($stage) // -1) + 1] // ""')
		change stage "$next" || { said=$answer && return 1; }
	fi
}

# tidy removes the work trees that are merged and clean, and their branches.
tidy() {
	for tree in "$worktrees"/*; do
		branch=$(git -C "$tree" symbolic-ref --quiet --short HEAD 2>&1) && [ "$branch" = "story/${tree##*/}" ] || continue
		[ -z "$(git -C "$tree" status --porcelain)" ] || continue
		api GET "$stories/$(uri "${tree##*/}")"
		[ "$(printf '%s' "$answer" | jq --arg branch "$branch" 'any(.work[]?; .branch == $branch and .merged)')" = true ] || continue
		repository=$(git -C "$tree" rev-parse --path-format=absolute --git-common-dir) &&
			git -C "$repository" worktree remove "$tree" && git -C "$repository" branch --quiet -D "$branch"
	done
	tree=
}

# ask asks a question and prints the answer. It fails without one.
ask() {
	api POST /questions "$(jq --null-input --arg project "$SWITCHYARD_PROJECT" --arg id "$id" --arg prompt "$1" \
		'{project: $project, story_id: $id, kind: "text", prompt: $prompt[:4000]}')"
	case $status in
	200 | 201) ;; # 200: it has asked before, and was killed
	*) return 1 ;;
	esac
	question=$(field .id)
	while [ "$(field .state)" = open ]; do
		api GET "/questions/$question?wait=50s"
		[ "$status" = 200 ] || return
	done
	field '.answer.value // "" | tostring'
	[ "$(field .state)" = answered ]
}

# work runs CMD on the story until it is done or blocked.
work() {
	unset SWITCHYARD_ANSWER
	while :; do
		api GET "$stories/$story"
		began=$(date +%s)
		note=$(field 'if .review.verdict? == "sent_back" then .review.note else "" end')
		field '.body // ""' | {
			[ -z "$tree" ] || cd "$tree" || exit
			# What it uses is counted for the story.
			SWITCHYARD_STORY_ID=$id SWITCHYARD_NOTE=$note \
				OTEL_RESOURCE_ATTRIBUTES=${OTEL_RESOURCE_ATTRIBUTES:+$OTEL_RESOURCE_ATTRIBUTES,}switchyard.story_id=$(uri "$id") \
				"$@" 2>&1
			echo "$newline$?"
		} | tee "$output" | sed '$d'
		code=$(tail -n 1 "$output") said=$(sed '$d' "$output" | grep . | tail -n 1)
		took=$(($(date +%s) - began))
		case $code in
		0)
			echo "$claim" >>"$ended"
			failures=0 pause=60
			finish
			return
			;;
		75)
			give_back
			rest "${said:-$id cannot be worked on now}"
			return
			;;
		3)
			if SWITCHYARD_ANSWER=$(ask "${said:-How shall I go on with $id?}"); then
				export SWITCHYARD_ANSWER
				continue
			fi
			said="nobody answered: $said"
			;;
		esac
		said=${said:-the command failed with exit status $code}
		block "$said"
		if [ "$took" -ge 10 ]; then
			failures=0 pause=60
		elif [ $((failures += 1)) -ge 3 ]; then
			rest "$failures stories in a row failed at once, the last with: $said"
		fi
		return
	done
}

stories=/projects/$(uri "$SWITCHYARD_PROJECT")/stories
while :; do
	[ -z "$worktrees" ] || tidy
	board
	id=$(mine) new=
	if [ -n "$id" ]; then
		api POST "$stories/claim" "$(jq --null-input --arg id "$id" '{story_id: $id}')"
		if [ "$status" != 200 ]; then # somebody has just taken it over
			sleep 1
			continue
		fi
		api GET "$stories/$(uri "$id")"
		if [ "$(field .blocked)" != null ]; then # the board is a moment older than the story
			sleep 1
			continue
		fi
		if [ "$(field .stage)" = "$last" ]; then # it is finished: the claim was about to end, or is a new one
			api DELETE "$stories/$(uri "$id")/claim"
			continue
		fi
	else
		api POST "$stories/claim" "{\"wait\": \"10s\", \"resume\": false${worktrees:+, \"to\": \"\"}}"
		[ "$status" = 204 ] && continue
		if [ "$status" != 200 ]; then
			echo "cannot claim a story: $answer" >&2
			exit 1
		fi
		id=$(field .story_id)
		# One that was sent back while it was claimed is in work already.
		new=$(field 'if .review.verdict? == "sent_back" and .claim.since_ms <= .review.at_ms then "" else "new" end')
	fi
	story=$(uri "$id") claim="$(field .claim.since_ms) $id"
	if grep -Fqx -e "$claim" "$ended"; then
		finish
		continue
	fi
	echo "working on $id"
	if [ -n "$worktrees" ] && ! settle "$new"; then
		tree=
		block "it has no work tree: $said"
		rest "$id has no work tree: $said"
		continue
	fi
	if [ $# -gt 0 ]; then
		work "$@"
	else
		walk || block "$answer"
	fi
done
