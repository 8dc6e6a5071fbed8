/* The score of a page that has all words of a search. The heading with the most of these words counts most, and the result
   leads to it. Guides come before other pages, and pages about the code come last. */
const words = (new URLSearchParams(location.search).get("q") || "")
  .toLowerCase()
  .split(/\W+/)
  .filter((word) => word.length > 2)
  .map((word) => new RegExp("\\b" + word.replace(/(?<=..)(e|s|ing)$/, "")));
var Scorer = {
  score: (result) => {
    const [page, title, , , score, , kind] = result;
    if (kind !== "text") return score;
    let best = 0;
    for (const [heading, places] of Object.entries(Search._index.alltitles)) {
      const found = words.filter((word) => word.test(heading.toLowerCase())).length;
      const fit = found && found + 0.5 / heading.split(" ").length;
      const place = places.find(([file]) => Search._index.docnames[file] === page);
      if (fit <= best || !place) continue;
      best = fit;
      result[1] = heading === title ? title : `${title} > ${heading}`;
      result[2] = place[1] ? "#" + place[1] : "";
    }
    if (/^docs\/(guides|tutorial|security)|^deploy/.test(page)) best += 0.5;
    if (/(BACKUP|CHANGELOG|DESIGN|FILES|FORMAT|PROTOCOL)$|^docs\/dev/.test(page)) best -= 3;
    return score + 10 * best;
  },
  objNameMatch: 31,
  objPartialMatch: 16,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
