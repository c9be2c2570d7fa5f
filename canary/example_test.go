package canary_test

import (
	"fmt"
	"io"

	"github.com/kvcanary/kvcanary/canary"
)

func Example() {
	// The key comes from canary.LoadOrCreateKey; this one is for show.
	coder := canary.New(canary.Key{1, 2, 3})

	// What an exchange plants is made from its id, as a stream.
	id := canary.MakeID(7, 2, 41) // run 7, tenant 2, exchange 41
	filler, err := io.ReadAll(coder.Words(id, 0, 1000))
	if err != nil {
		panic(err)
	}

	// Some of it comes out in the answer to somebody else.
	answer := "Noted: " + string(filler[3000:3100]) + " - anything else?"

	for _, hit := range coder.Scan([]byte(answer)) {
		fmt.Println("run", hit.ID.Run(), "tenant", hit.ID.Tenant(), "exchange", hit.ID.Seq())
		words, err := io.ReadAll(coder.Words(hit.ID, hit.Word, hit.Words))
		if err != nil {
			panic(err)
		}
		fmt.Println(hit.Words, "words from word", hit.Word, "on:", string(words) == answer[hit.Start:hit.End])
	}
	// Output:
	// run 7 tenant 2 exchange 41
	// 14 words from word 426 on: true
}
