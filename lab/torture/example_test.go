package torture_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/lab/torture"
)

func ExampleCommand() {
	_, err := torture.Command("mine", nil)
	fmt.Println(err)
	client, err := torture.Command("curl", []string{"curl", "-sf", "--retry", "3", "-X", "{method}", "{url}"})
	fmt.Println(client.Name(), err)
	// Output:
	// no command: give the program and its arguments, such as -- ./client {url} {method} {body-file}
	// curl <nil>
}

func ExampleNetHTTP() {
	fmt.Println(torture.NetHTTP().Name())
	// Output: net/http
}

func ExampleLull() {
	fmt.Println(torture.Lull("lullhttp", lull.Policy{}).Name())
	// Output: lullhttp
}

func ExampleCases() {
	groups := map[string]int{}
	for _, c := range torture.Cases() {
		groups[c.Group]++
	}
	fmt.Println(len(groups) == len(torture.Groups), groups["bodies"])
	// Output: true 6
}

func ExampleSelect() {
	cases, err := torture.Select([]string{"key-4*"})
	for _, c := range cases {
		fmt.Println(c.Name)
	}
	fmt.Println(err)
	// Output:
	// key-429
	// key-409
	// key-422
	// <nil>
}

func cards() []*torture.Card {
	return []*torture.Card{{Name: "mine", Results: []torture.Result{
		{Case: "status-503", Group: "statuses", Verdict: torture.Verdict{Grade: torture.Pass, Why: "2 attempts"}},
		{Case: "once-400", Group: "must not be repeated", Right: "does not repeat it", Source: "RFC 9110, 15.5", Verdict: torture.Verdict{Grade: torture.Fail, Why: "5 attempts"}},
	}}}
}

func ExampleCard_Lines() {
	for _, l := range cards()[0].Lines() {
		if l.Grade != torture.NotApplicable {
			fmt.Printf("%s: %s %q\n", l.Group, l.Grade, l.Why)
		}
	}
	// Output:
	// statuses: pass ""
	// must not be repeated: fail "once-400: 5 attempts"
}

func ExampleMatrix() {
	groups, lines := torture.Matrix(append(cards(), cards()...))
	fmt.Println(len(groups), len(lines), groups[2], lines[1][2].Grade)
	// Output: 12 2 must not be repeated fail
}

func ExampleGrade_Because() {
	v := torture.Warn.Because("%d attempts", 12)
	fmt.Println(v.Grade, v.Why)
	// Output: warn 12 attempts
}

func ExampleWriteJUnit() {
	if err := torture.WriteJUnit(os.Stdout, cards()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites>
	//  <testsuite name="mine" tests="2" failures="1" skipped="0" time="0.000">
	//   <testcase classname="statuses" name="status-503" time="0.000">
	//    <system-out>pass: 2 attempts</system-out>
	//   </testcase>
	//   <testcase classname="must not be repeated" name="once-400" time="0.000">
	//    <failure message="5 attempts">does not repeat it (RFC 9110, 15.5)</failure>
	//   </testcase>
	//  </testsuite>
	// </testsuites>
}

func ExampleWriteJSON() {
	var b bytes.Buffer
	if err := torture.WriteJSON(&b, cards()); err != nil {
		fmt.Println(err)
		return
	}
	again, err := torture.ReadJSON(&b)
	fmt.Println(again[0].Name, again[0].Count(torture.Fail), err)
	// Output: mine 1 <nil>
}

func ExampleReadJSON() {
	_, err := torture.ReadJSON(bytes.NewReader([]byte(`{"cards": [{"name": "a", "results": [{"verdict": {"grade": "good"}}]}]}`)))
	fmt.Println(err)
	// Output: cards[0].results[0].verdict.grade is "good", want pass, warn, fail or n/a
}

func ExampleWritePage() {
	var b bytes.Buffer
	if err := torture.WritePage(&b, cards()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(bytes.Contains(b.Bytes(), []byte(`<a href="#c0-once-400" title="5 attempts">fail</a>`)))
	// Output: true
}
