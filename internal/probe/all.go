package probe

// All lists the protocols in the order in which a campaign runs them: cheap
// ones first, and the limits found before they are straddled.
func All() []Protocol {
	return []Protocol{
		Smoke(),
		Boundary(),
		Straddle(),
		Tenants(),
		Interleave(),
		IDs(),
		Churn(),
		Replay(),
		PrefixSharing(),
		Roundtrip(),
	}
}
