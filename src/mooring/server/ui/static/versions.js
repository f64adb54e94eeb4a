// The newest versions are on the right: a timeline that is wider than the window begins there.

for (const one of document.querySelectorAll("[data-timeline]")) one.scrollLeft = one.scrollWidth;
